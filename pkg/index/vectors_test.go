package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// number is a float64 that JSON may write as "NaN", "+Inf" or "-Inf"; null or a
// missing key leaves it absent.
type number struct {
	value float64
	known bool
}

func (n *number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), 64)
	*n = number{v, true}
	return err
}

func (n number) rate() Rate {
	if !n.known {
		return Rate{}
	}
	return KnownRate(n.value)
}

func (n number) or(absent float64) float64 {
	if !n.known {
		return absent
	}
	return n.value
}

// runVectors calls check for every case of one family: check decodes the input
// and returns its outputs by name. Only the keys of the expected output count.
func runVectors(t *testing.T, family string, check func(t *testing.T, in []byte) (map[string]any, error)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", family+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			ID    string
			In    json.RawMessage
			Out   map[string]json.RawMessage
			Error string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 20 {
		t.Fatalf("%s: only %d cases", family, len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			got, err := check(t, c.In)
			if (c.Error != "") != (err != nil) || err != nil && !errors.Is(err, ErrInvalidArgument) {
				t.Fatalf("error = %v, want %q (input %s)", err, c.Error, c.In)
			}
			for key, want := range c.Out {
				if err == nil {
					compare(t, key, got[key], want)
				}
			}
		})
	}
}

// compare checks one output: numbers to 1e-9 relative or 1e-12 absolute,
// everything else exactly.
func compare(t *testing.T, key string, got any, want json.RawMessage) {
	t.Helper()
	switch got := got.(type) {
	case number:
		var n number
		decode(t, want, &n)
		if got.known != n.known || !near(got.value, n.value) {
			t.Errorf("%s = %v, want %s", key, got, want)
		}
	case []float64:
		var list []number
		decode(t, want, &list)
		if len(list) != len(got) {
			t.Fatalf("%s = %v, want %s", key, got, want)
		}
		for i, n := range list {
			if !near(got[i], n.value) {
				t.Errorf("%s[%d] = %v, want %v", key, i, got[i], n.value)
			}
		}
	default:
		have, err := json.Marshal(got)
		var compact bytes.Buffer
		if err != nil || json.Compact(&compact, want) != nil || compact.String() != string(have) {
			t.Errorf("%s = %s, want %s (%v)", key, have, want, err)
		}
	}
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= max(1e-12, 1e-9*max(math.Abs(a), math.Abs(b)))
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
}

func out(key string, value float64) map[string]any {
	return map[string]any{key: number{value, true}}
}

func TestVectorsProvisionRatio(t *testing.T) {
	runVectors(t, "provision_ratio", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct{ Offered, Required number }
		decode(t, text, &in)
		r, err := ProvisionRatio(in.Offered.value, in.Required.value)
		return out("R", r), err
	})
}

func TestVectorsPotential(t *testing.T) {
	runVectors(t, "potential", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct {
			Site   grid.SiteID
			Upload map[grid.SiteID]number `json:"upload_bps"`
			Source number                 `json:"P_src"`
		}
		decode(t, text, &in)
		var uploads []Upload
		for peer, bps := range in.Upload {
			uploads = append(uploads, Upload{peer, bps.value})
		}
		p, err := Potential(in.Site, uploads)
		if err != nil {
			return nil, err
		}
		r, err := ProvisionRatio(p, in.Source.value)
		return map[string]any{"P": number{p, true}, "R_P": number{r, true}}, err
	})
}

func TestVectorsComputationIndex(t *testing.T) {
	runVectors(t, "computation_index", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct {
			Req, Offer, K map[string]number
			Mode          string
			Normalise     bool
		}
		decode(t, text, &in)
		var dims []Dimension
		for name, g := range in.Req {
			dims = append(dims, Dimension{in.Offer[name].value, g.value, in.K[name].or(1)})
		}
		mode := map[string]Mode{"weight": ModeWeight, "paper": ModePaper}[in.Mode]
		x, err := ComputationIndex(dims, mode, in.Normalise)
		return out("x", x), err
	})
}

func TestVectorsEffectiveBandwidth(t *testing.T) {
	runVectors(t, "effective_bandwidth", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct {
			Down number `json:"down_ij"`
			Up   number `json:"up_ji"`
		}
		decode(t, text, &in)
		rate, err := EffectiveBandwidth(in.Down.rate(), in.Up.rate())
		bps, known := rate.Bps()
		return map[string]any{"B": number{bps, known}}, err
	})
}

type transferIn struct {
	Bytes, Bps number
	Local      bool
	LocalBps   number `json:"local_bps"`
}

func (in transferIn) transfer() Transfer {
	return Transfer{Bytes: in.Bytes.value, Link: in.Bps.rate(), Local: in.Local, Disk: in.LocalBps.rate()}
}

func TestVectorsDataIndex(t *testing.T) {
	runVectors(t, "data_index", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct {
			transferIn
			Runtime number `json:"runtime_s"`
		}
		decode(t, text, &in)
		y, err := DataIndex(in.transfer(), in.Runtime.value)
		if err != nil {
			return nil, err
		}
		bounded, err := YBounded(y)
		return map[string]any{"y": number{y, true}, "y_bounded": number{bounded, true}}, err
	})
}

func TestVectorsDataIndexMulti(t *testing.T) {
	runVectors(t, "data_index_multi", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct {
			Sources []transferIn
			Runtime number `json:"runtime_s"`
		}
		decode(t, text, &in)
		var inputs []Transfer
		for _, s := range in.Sources {
			inputs = append(inputs, s.transfer())
		}
		y, err := DataIndexMulti(inputs, in.Runtime.value)
		return out("y", y), err
	})
}

func TestVectorsDistance(t *testing.T) {
	runVectors(t, "distance", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct{ X, Y, Z number }
		decode(t, text, &in)
		d, err := Distance(in.X.value, in.Y.value, in.Z.value)
		return out("d", d), err
	})
}

func TestVectorsRank(t *testing.T) {
	runVectors(t, "rank", func(t *testing.T, text []byte) (map[string]any, error) {
		var in struct {
			Acks []struct {
				ID       grid.SiteID
				X, Y, Z  number
				Feasible *bool
			}
			Limit int
		}
		decode(t, text, &in)
		var points []Point
		for _, a := range in.Acks {
			points = append(points, Point{a.ID, a.X.value, a.Y.value, a.Z.value, a.Feasible != nil && !*a.Feasible})
		}
		order, distances := []string{}, []float64{}
		for _, r := range Rank(points, in.Limit) {
			order, distances = append(order, string(r.Site)), append(distances, r.Distance)
		}
		return map[string]any{"order": order, "d": distances}, nil
	})
}
