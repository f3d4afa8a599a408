package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// wishes are what the owner wants to give, by flags or by the answers to join's questions.
type wishes struct {
	give    string // percent of cores and memory; empty: what the agent chooses
	service bool   // start the site as a service of its user

	values []config.Value // to be written into a new configuration
}

// nights are the hours of the answer "nights".
const nights = "22:00-07:00"

// usualAnswer is the answer by which nothing is chosen.
const usualAnswer = "usual"

func (w *wishes) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.give, "give", "",
		"how much of the cores and the memory jobs may use, 1% to 100%")
	cmd.Flags().BoolVar(&w.service, "service", false,
		"start the site as a service of yours, now and at each login (systemd)")
}

// parseGive reads a percentage of the machine, and gives it as settings.
func parseGive(text string, m hostinfo.Machine) ([]config.Value, error) {
	const whole, core, leastMilli, leastMiB, milli = 100, 1000, 100, 64, 1000
	percent, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), "%"), 10, 64)
	if err != nil || percent < 1 || percent > whole {
		return nil, fmt.Errorf("want 1%% to 100%%, have %q", text)
	}
	cpus := max(int64(m.Cores)*core*percent/whole, leastMilli)
	values := []config.Value{
		{Name: "ceilings.cpus", Text: strconv.FormatFloat(float64(cpus)/milli, 'f', -1, 64)},
	}
	if m.MemoryBytes > 0 {
		mib := max(m.MemoryBytes>>20*percent/whole, leastMiB)
		text := fmt.Sprintf("%dMiB", mib)
		values = append(values, config.Value{Name: "ceilings.memory", Text: text})
	}
	return values, nil
}

// parseWhen reads when the machine is shared, as a setting; none for always.
func parseWhen(text string) ([]config.Value, error) {
	switch strings.ToLower(text) {
	case "always":
		return nil, nil
	case "nights":
		text = nights
	}
	if _, err := yield.ParseHours(text); err != nil {
		return nil, fmt.Errorf("want always, nights, or hours: %w", err)
	}
	return []config.Value{{Name: "owner.hours", Text: text}}, nil
}

// decide finds out what the owner gives. Questions are about what nobody has chosen yet, and are
// asked only where there is a person to answer them; without one the defaults count. A
// configuration that is there is left to say all of this.
func (w *wishes) decide(ctx context.Context, j *joining) error {
	_, origins, err := config.Explain(j.sources())
	if err != nil {
		return usageError{err}
	}
	chosen := func(names ...string) bool { return isChosen(origins, names...) }
	machine, _ := hostinfo.Probe(ctx, os.TempDir()) // what stays unknown is not given by percentage
	if w.give != "" {
		if chosen("ceilings.cpus", "ceilings.memory") {
			return usageError{errors.New("--give: want it or the ceilings, not both")}
		}
		if w.values, err = parseGive(w.give, machine); err != nil {
			return usageError{fmt.Errorf("--give: %w", err)}
		}
	}
	if !j.fresh {
		said, err := j.o.chosen()
		j.saveNothing(append(said, w.values...))
		w.values = nil
		return err
	}
	if j.person == nil {
		return nil
	}
	return w.askAll(ctx, j, machine, chosen)
}

// saveNothing says which wishes the configuration that is there does not say.
func (j *joining) saveNothing(chosen []config.Value) {
	for _, v := range unwritten(j.file, chosen) {
		if v.Name != "name" { // that has its own sentence
			fmt.Fprintf(j.notes, "not written into %s: %s %s; siteagent config set writes it\n",
				j.file, v.Name, v.Text)
		}
	}
}

// askAll asks the questions that are open.
func (w *wishes) askAll(
	ctx context.Context, j *joining, m hostinfo.Machine, chosen func(...string) bool,
) error {
	j.person.say("Enter takes what stands in brackets. ^C ends this, and nothing is changed.")
	if w.give == "" && !chosen("ceilings.cpus", "ceilings.memory") {
		if err := w.askGive(ctx, j.person, m); err != nil {
			return err
		}
	}
	if !chosen("owner.hours") {
		question := "When? always, nights (" + nights + "), or hours such as mon-fri 18:00-08:00."
		if j.config.Owner.Yield {
			question += " While you use the machine, jobs wait in any case."
		}
		err := j.person.ask(ctx, question, "always",
			func(answer string) error {
				values, err := parseWhen(answer)
				w.values = append(w.values, values...)
				return err
			})
		if err != nil {
			return err
		}
	}
	if chosen("owner.battery") {
		return nil
	}
	if !owner.HasBattery(j.config.Owner.Root) {
		j.person.say("This machine has no battery, so nothing is asked about one.")
		return nil
	}
	battery := false
	err := j.person.ask(ctx, "Also while it runs on battery? yes or no", "no", parseYes(&battery))
	if battery {
		w.values = append(w.values, config.Value{Name: "owner.battery", Text: "true"})
	}
	return err
}

// askGive asks how much of the machine is given.
func (w *wishes) askGive(ctx context.Context, d *dialogue, m hostinfo.Machine) error {
	usual := hostinfo.Ceilings(m, grid.Resources{}, 0)
	question := fmt.Sprintf("How much may jobs of others use while you do not need it? A "+
		"percentage of %s and %s of memory, or %s: %s and %s.",
		plural(m.Cores, "core", "cores"), grid.FormatBytes(m.MemoryBytes), usualAnswer,
		coresText(usual.MilliCPUs), grid.FormatBytes(usual.MemoryBytes))
	return d.ask(ctx, question, usualAnswer, func(answer string) error {
		if strings.EqualFold(answer, usualAnswer) {
			return nil
		}
		values, err := parseGive(answer, m)
		if err != nil {
			return fmt.Errorf("%w; or %s", err, usualAnswer)
		}
		w.values = append(w.values, values...)
		return nil
	})
}

// coresText is a number of cores, for people.
func coresText(milli int64) string {
	const core = 1000
	if milli == core {
		return "1 core"
	}
	return strconv.FormatFloat(float64(milli)/core, 'f', -1, 64) + " cores"
}
