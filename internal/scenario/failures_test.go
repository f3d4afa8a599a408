package scenario

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const failingHead = "grid n=4 nodes=16\njobs procs=8 longest=2h for=8h\n"

// A line says as many settings as it leaves choices; both readings of a run factor give the mean
// time up that they say.
func TestSettings(t *testing.T) {
	e, err := ParseExperiment(failingHead +
		"failures availability=.9 factor=.1,.01 reading=over,times law=normal,weibull " +
		"spread=.5\n" +
		"failures availability=.3 mttf=10h law=exponential end=1h\n" +
		"strategy name=A on=queue policy=nsa z=thesis retry=last\n" +
		"strategy name=B on=mesh policy=naa likeliest=first retry=failover\n" +
		"expect ratio=A/B of=failed to=1 factor=.1 law=weibull,normal reading=times\n" +
		"expect ratio=A/B of=failures to=1\n")
	if err != nil {
		t.Fatal(err)
	}
	up := make(map[string]time.Duration)
	for _, s := range e.Settings {
		up[s.Name] = s.Up
	}
	if want := map[string]time.Duration{
		"normal-0.1-over": 20 * time.Hour, "normal-0.01-over": 200 * time.Hour,
		"normal-0.1-times": 12 * time.Minute, "normal-0.01-times": 72 * time.Second,
		"weibull-0.1-over": 20 * time.Hour, "weibull-0.01-over": 200 * time.Hour,
		"weibull-0.1-times": 12 * time.Minute, "weibull-0.01-times": 72 * time.Second,
		"exponential-0.3": 10 * time.Hour,
	}; !reflect.DeepEqual(up, want) {
		t.Errorf("settings %v", up)
	}
	first, last := e.Settings[0], e.Settings[8]
	if first.End != 16*time.Hour || last.End != time.Hour ||
		first.Spread != .5 || last.Spread != 0 || first.Availability != .9 {
		t.Errorf("%+v, %+v", first, last)
	}
	a, b := e.Strategies[0].Guard, e.Strategies[1].Guard
	if a != (Guard{Admits: true, Orders: true, Thesis: true, Retry: "last"}) ||
		b != (Guard{Orders: true, Likeliest: true, Retry: "failover"}) {
		t.Errorf("%+v, %+v", a, b)
	}
	var in []string
	for _, s := range e.Settings {
		if e.Claims[0].In(s) {
			in = append(in, s.Name)
		}
		if !e.Claims[1].In(s) {
			t.Errorf("a claim without conditions is not made in %s", s.Name)
		}
	}
	if strings.Join(in, " ") != "normal-0.1-times weibull-0.1-times" {
		t.Errorf("the claim is made in %v", in)
	}
}

func TestForecasts(t *testing.T) {
	e, err := ParseExperiment(failingHead + "failures availability=.5 mttf=1h\n" +
		"forecast name=F by=nodes ahead=6m\nexpect strategy=F of=within2 from=.9 to=1\n")
	if err != nil || e.Strategies[0].Forecast != (Forecast{"nodes", 6 * time.Minute}) ||
		e.Claims[0].Strategy != "F" || e.Claims[0].Beside != "" {
		t.Errorf("%+v, %v", e, err)
	}
}

// What is wrong with a line is said, and what to do.
func TestFailuresMistakes(t *testing.T) {
	const queue = "strategy name=A on=queue\n"
	only := func(rest string) string { return failingHead + rest + "\n" }
	fails := func(rest string) string { return failingHead + queue + "failures " + rest + "\n" }
	for text, want := range map[string]string{
		fails("factor=.1"):                                                 "above 0 and below 1",
		fails("availability=1 factor=.1"):                                  "above 0 and below 1",
		fails("availability=.9"):                                           "either factor=",
		fails("availability=.9 factor=.1 mttf=1h"):                         "either factor=",
		fails("availability=.9 factor=0"):                                  "numbers from 1e-06",
		fails("availability=.9 factor=.1,,1"):                              "numbers from 1e-06",
		fails("availability=.9 factor=.1,.1"):                              "each once",
		fails("availability=.9 factor=NaN"):                                "numbers from 1e-06",
		fails("availability=.9 factor=.1 law=lognormal"):                   "some of normal,",
		fails("availability=.9 factor=.1 law=normal,"):                     "some of normal,",
		fails("availability=.9 factor=.1 reading=under"):                   "some of over,times",
		fails("availability=.9 factor=.00001 reading=times"):               "mean time up from",
		fails("availability=.9 factor=.000001"):                            "to 366 days",
		fails("availability=.9 factor=.1 shape=2"):                         "did you mean law?",
		fails("availability=.9 mttf=1h\nfailures availability=.9 mttf=2h"): "0.9 is there twice",
		only("strategy name=A policy=some"):                                "none or saa or naa",
		only("strategy name=A on=mesh z=thesis"):                           "conditional on the",
		only("strategy name=A on=queue likeliest=first"):                   "near, but with",
		only("strategy name=A on=mesh likeliest=first"):                    "near, but with",
		only("strategy name=A on=mesh retry=last"):                         "failover on the mesh",
		only("strategy name=A on=queue retry=failover"):                    "failover on the mesh",
		only("strategy name=A on=queue copies=2 retry=last"):               "where jobs have",
		only("strategy name=A@B on=queue"):                                 "a name without / or @",
		only("forecast name=A by=stars"):                                   "equation or bare or",
		only("forecast name=A"):                                            "add failures",
		only(queue + "expect strategy=B of=within2 to=1"):                  "B: want the name",
		only(queue + "expect ratio=A/ of=wait to=1"):                       "names of two",
		only(queue + "expect ratio=A/A of=wait to=1 law=normal"):           "of a line failures",
	} {
		_, err := ParseExperiment(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want %q", strings.TrimPrefix(text, failingHead), err, want)
		}
	}
}
