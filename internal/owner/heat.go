package owner

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v4/common"
	"github.com/shirou/gopsutil/v4/sensors"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// heatEvery is the pause between two looks: processors heat up in seconds, and some thermometers
// are slow to read.
const heatEvery = 5 * time.Second

// newHeat asks the machine's thermometers whether its processors are too hot.
func newHeat(root string) *asker {
	var heat *yield.Heat
	var limit string
	return &asker{
		every: heatEvery,
		ask: func(ctx context.Context, about []string) yield.Said {
			if heat == nil || about[0] != limit {
				limit = about[0]
				degrees, _ := strconv.Atoi(limit) // asksHeat wrote it
				heat = yield.NewHeat(degrees)
			}
			return heat.Look(thermometers(ctx, root))
		},
	}
}

// asksHeat says about what such an asker is to ask: nothing, or a limit in degrees Celsius.
func asksHeat(limit int) []string {
	if limit == 0 {
		return nil
	}
	return []string{strconv.Itoa(limit)}
}

// thermometers are those that the kernel tells of.
func thermometers(ctx context.Context, root string) (all []yield.Sensor) {
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{
		common.HostSysEnvKey: filepath.Join(root, "sys"),
	})
	read, _ := sensors.TemperaturesWithContext(ctx) // what it could read counts
	for _, t := range read {
		all = append(all, yield.Sensor{Name: t.SensorKey, Celsius: t.Temperature})
	}
	return all
}
