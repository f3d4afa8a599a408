package grid

import (
	"errors"
	"testing"
	"time"
)

func TestSavingRules(t *testing.T) {
	for _, c := range []struct {
		rule Saving
		word string
		bad  bool
	}{
		{Saving{}, "auto", false},
		{Saving{Off: true}, "off", false},
		{Saving{Every: 5 * time.Minute}, "every 5m0s", false},
		{Saving{Every: MinSaving}, "every 1s", false},
		{Saving{Every: MaxSaving}, "every 24h0m0s", false},
		{Saving{Every: MinSaving - 1}, "every 999.999999ms", true},
		{Saving{Every: MaxSaving + 1}, "every 24h0m0.000000001s", true},
		{Saving{Every: -time.Second}, "every -1s", true},
		{Saving{Off: true, Every: time.Minute}, "off", true},
		{Saving{Whole: true}, "transparent", false},
		{Saving{Whole: true, Every: 5 * time.Minute}, "transparent every 5m0s", false},
		{Saving{Whole: true, Every: MinSaving - 1}, "transparent every 999.999999ms", true},
		{Saving{Whole: true, Off: true}, "transparent", true},
		{Saving{Every: time.Minute, Rule: SaveLFCA}, "lfca every 1m0s", false},
		{
			Saving{Every: time.Minute, Rule: SaveMFCA, Whole: true},
			"transparent mfca every 1m0s", false,
		},
		{Saving{Every: time.Minute, Rule: SaveMFCA + 1}, " every 1m0s", true},
		{Saving{Rule: SaveLFCA}, "auto", true},
	} {
		if got := c.rule.String(); got != c.word {
			t.Errorf("%+v reads %q, want %q", c.rule, got, c.word)
		}
		if err := c.rule.Validate(); errors.Is(err, ErrInvalid) != c.bad {
			t.Errorf("%+v: %v", c.rule, err)
		}
	}
}

func TestCheckpointLimits(t *testing.T) {
	good := Checkpoint{Number: 2, CID: "bafysaved", Bytes: 7, Worked: time.Second, Percent: 100}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Checkpoint){
		"no number":    func(c *Checkpoint) { c.Number = 0 },
		"no content":   func(c *Checkpoint) { c.CID = "" },
		"below 0":      func(c *Checkpoint) { c.Bytes = -1 },
		"too much":     func(c *Checkpoint) { c.Bytes = maxBytes + 1 },
		"ran backward": func(c *Checkpoint) { c.Worked = -1 },
		"ran too long": func(c *Checkpoint) { c.Worked = 2*MaxRuntime + 1 },
		"101 %":        func(c *Checkpoint) { c.Percent = 101 },
	} {
		bad := good
		if change(&bad); !errors.Is(bad.Validate(), ErrInvalid) {
			t.Errorf("%s: %+v is valid", name, bad)
		}
	}
}

func TestSavedAreTheLatestFirst(t *testing.T) {
	c := func(n uint64) Checkpoint { return Checkpoint{Number: n, CID: "bafysaved"} }
	for _, good := range [][]Checkpoint{nil, {c(1)}, {c(2), c(1)}, {c(9), c(3)}} {
		if err := ValidateSaved(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]Checkpoint{
		{c(0)}, {c(1), c(2)}, {c(2), c(2)}, {c(3), c(2), c(1)}, {c(2), c(0)},
	} {
		if err := ValidateSaved(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// What a task computes changes its digest; what a site or its submitter allows does not.
func TestWorkDigestNamesTheWork(t *testing.T) {
	spec := Spec{
		Kind: KindWasm, Module: Input{CID: "bafymodule"}, Args: []string{"a"},
		Env: []EnvVar{{Name: "N", Value: "1"}}, Inputs: []Input{{Path: "/in", CID: "bafyin"}},
	}
	const job = JobID("mfrggzdfmztwq2lk")
	digest := func(change func(*Spec), index uint32) string {
		s := spec
		change(&s)
		return s.Expand(job, index, Item{}).WorkDigest()
	}
	same := digest(func(*Spec) {}, 0)
	if len(same) != 64 {
		t.Fatalf("digest %q", same)
	}
	for name, change := range map[string]func(*Spec){
		"limit":      func(s *Spec) { s.TimeLimit = time.Hour },
		"memory":     func(s *Spec) { s.Need.MemoryBytes++ },
		"checkpoint": func(s *Spec) { s.Checkpoint.Off = true },
		"outputs":    func(s *Spec) { s.Outputs = []Output{{Path: "/out"}} },
	} {
		if digest(change, 0) != same {
			t.Errorf("%s changes it", name)
		}
	}
	for name, change := range map[string]func(*Spec){
		"kind":   func(s *Spec) { s.Kind = KindCommand },
		"module": func(s *Spec) { s.Module.CID = "bafyother" },
		"args":   func(s *Spec) { s.Args = []string{"a", ""} },
		"env":    func(s *Spec) { s.Env = nil },
		"inputs": func(s *Spec) { s.Inputs = []Input{{Path: "/in", CID: "bafyother"}} },
	} {
		if digest(change, 0) == same {
			t.Errorf("%s does not change it", name)
		}
	}
	if digest(func(*Spec) {}, 1) == same {
		t.Error("two tasks have one")
	}
}

// Only commands are saved whole, and only sites that can do that are asked.
func TestWhatIsSavedWhole(t *testing.T) {
	whole := Saving{Whole: true}
	command := validSpec(func(s *Spec) {
		s.Kind, s.Module, s.Args, s.Checkpoint = KindCommand, Input{}, []string{"x"}, whole
	})
	if err := command.Validate(); err != nil {
		t.Error(err)
	}
	module := validSpec(func(s *Spec) { s.Checkpoint = whole })
	if err := module.Validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a module: %v", err)
	}
	for _, saving := range []Saving{{}, {Off: true}, {Every: time.Minute}, whole} {
		j := validJob(func(j *Job) { j.Spec.Checkpoint = saving })
		if got := j.Requirement("home", "me", Capability{}, 0).Saves; got != saving.Whole {
			t.Errorf("%s: sites that save are asked alone: %v", saving, got)
		}
	}
}

func TestParseSaving(t *testing.T) {
	for text, want := range map[string]Saving{
		"auto": {}, "off": {Off: true}, "every 5m": {Every: 5 * time.Minute},
		"every  1s ": {Every: time.Second}, "every 24h0m0s": {Every: 24 * time.Hour},
		"transparent": {Whole: true}, "transparent every 5m": {Whole: true, Every: 5 * time.Minute},
		"lfca every 5m":             {Rule: SaveLFCA, Every: 5 * time.Minute},
		"mfca every 5m":             {Rule: SaveMFCA, Every: 5 * time.Minute},
		"transparent lfca every 5m": {Whole: true, Rule: SaveLFCA, Every: 5 * time.Minute},
	} {
		got, err := ParseSaving(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseSaving(got.String()); err != nil || again != want {
			t.Errorf("%q again: %+v, %v", got, again, err)
		}
	}
	for _, text := range []string{
		"", "on", "every", "every ", "5m", "every 0s", "every 10ms", "every 25h", "every -5m",
		"every x", "transparent off", "transparent auto", "transparent transparent", "transparent ",
		"transparently", "transparent every 10ms", "every 5m transparent", "lfca", "lfca 5m",
		"lfca auto", "lfca mfca every 5m", "every lfca 5m", "lfca every 0s", "LFCA every 5m",
		"lfca transparent every 5m",
	} {
		if got, err := ParseSaving(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
