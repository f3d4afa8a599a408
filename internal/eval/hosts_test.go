package eval

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// column reads the numbers of a column of comma separated lines below their head.
func column(t *testing.T, text, head string, n int) []float64 {
	t.Helper()
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if rows[0] != head {
		t.Fatalf("head %q, want %q", rows[0], head)
	}
	var numbers []float64
	for _, row := range rows[1:] {
		x, err := strconv.ParseFloat(strings.Split(row, ",")[n], 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, x)
	}
	return numbers
}

func TestHostsAreWritten(t *testing.T) {
	var text bytes.Buffer
	hosts := Hosts{Sites: 16, Median: 5, Sigma: 1.2, Total: 128, Seed: 1}
	if err := hosts.Write(&text); err != nil {
		t.Fatal(err)
	}
	speeds := column(t, text.String(), "site,speed", 1)
	if len(speeds) != 16 || math.Abs(sum(speeds)-128) > 0.01 {
		t.Errorf("speeds %v", speeds)
	}
	hosts.Total = 0
	text.Reset()
	if err := hosts.Write(&text); err != nil {
		t.Fatal(err)
	}
	drawn := column(t, text.String(), "site,speed", 1)
	for i := range drawn {
		if math.Abs(drawn[i]/sum(drawn)*128/speeds[i]-1) > 1e-4 {
			t.Errorf("speeds %v, scaled %v", drawn, speeds)
		}
	}
	text.Reset()
	table := Hosts{Sites: 50, Speeds: write(t, "speeds.csv.gz", zip(t, "# x\n3,7\n1,9\n"))}
	if err := table.Write(&text); err != nil {
		t.Fatal(err)
	}
	seen := slices.Compact(slices.Sorted(slices.Values(column(t, text.String(), "site,speed", 1))))
	if !slices.Equal(seen, []float64{7, 9}) {
		t.Errorf("speeds %v, want those of the table", seen)
	}
}

func TestLinksAreWritten(t *testing.T) {
	var text bytes.Buffer
	if err := (Links{Sites: 3, Median: 10, Sigma: 0.7, Local: 100, Seed: 1}).Write(&text); err != nil {
		t.Fatal(err)
	}
	const head = "from,to,rate"
	from, to := column(t, text.String(), head, 0), column(t, text.String(), head, 1)
	if !slices.Equal(from, []float64{0, 0, 0, 1, 1, 1, 2, 2, 2}) ||
		!slices.Equal(to, []float64{0, 1, 2, 0, 1, 2, 0, 1, 2}) {
		t.Errorf("pairs: %s", text.String())
	}
	for i, rate := range column(t, text.String(), head, 2) {
		if (rate == 100) != (from[i] == to[i]) || rate <= 0 {
			t.Errorf("from %v to %v: %v", from[i], to[i], rate)
		}
	}
}

func TestHostsAndLinksRefuse(t *testing.T) {
	hosts := Hosts{Sites: 1, Median: 1, Sigma: 1}
	links := Links{Sites: 1, Median: 1, Sigma: 1, Local: 1}
	for want, err := range map[string]error{
		"--sites: want 1 to 1000000, have 0": Hosts{Median: 1, Sigma: 1}.Write(&bytes.Buffer{}),
		"have 1000001":                       Hosts{Sites: 1_000_001}.Write(&bytes.Buffer{}),
		"--total: want a positive speed":     Hosts{Sites: 1, Total: -1}.Write(&bytes.Buffer{}),
		"speed, have NaN":                    Hosts{Sites: 1, Total: math.NaN()}.Write(&bytes.Buffer{}),
		"--median: want a positive number":   Hosts{Sites: 1, Sigma: 1}.Write(&bytes.Buffer{}),
		"--median, --sigma: shape: ": Hosts{
			Sites: 1, Median: 1, Sigma: -1,
		}.Write(&bytes.Buffer{}),
		"--sites: want 1 to 1000, have 0": Links{Median: 1, Sigma: 1, Local: 1}.Write(&bytes.Buffer{}),
		"have 1001":                       Links{Sites: 1001}.Write(&bytes.Buffer{}),
		"--local: want a positive rate":   Links{Sites: 1}.Write(&bytes.Buffer{}),
		"positive number, have -1": Links{
			Sites: 1, Local: 1, Median: -1,
		}.Write(&bytes.Buffer{}),
	} {
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
	if err := errors.Join(hosts.Write(&bytes.Buffer{}), links.Write(&bytes.Buffer{})); err != nil {
		t.Error(err)
	}
	absent := Hosts{Sites: 1, Speeds: "testdata/absent.csv"}
	if err := absent.Write(&bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "testdata/absent.csv") {
		t.Errorf("error = %v", err)
	}
}

// The speeds of volunteers' hosts have the quantiles that their owner published.
func TestSpeedsOfVolunteers(t *testing.T) {
	var text bytes.Buffer
	err := Hosts{
		Sites: 100_000, Seed: 1,
		Speeds: filepath.Join(traces(t), "hosts", "host-speed-setiathome.csv.gz"),
	}.Write(&text)
	if err != nil {
		t.Fatal(err)
	}
	speeds := slices.Sorted(slices.Values(column(t, text.String(), "site,speed", 1)))
	for p, want := range map[float64]float64{
		0.05: 0.85, 0.25: 1.73, 0.5: 3.36, 0.75: 6.19, 0.95: 21.7,
	} {
		if got := speeds[int(p*float64(len(speeds)))]; math.Abs(got/want-1) > 0.03 {
			t.Errorf("quantile %v: %v GFLOPS, want %v", p, got, want)
		}
	}
	if mean := sum(speeds) / float64(len(speeds)); math.Abs(mean-5.92) > 0.1 {
		t.Errorf("mean %v GFLOPS, want 5.92", mean)
	}
}
