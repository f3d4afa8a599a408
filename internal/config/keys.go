package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Key describes one setting, for flags and for help.
type Key struct {
	Name       string // dotted: "ceilings.memory"
	Flag       string // without dashes in front: "ceilings-memory"
	Env        string // "MRS_CEILINGS_MEMORY"
	Help       string // what it does
	Type       string // what is written: text, list, yes/no, number, percent, size, rate or duration
	Default    string // in the units that people write; empty: nothing
	WAN        string // the default of preset wan, where that is another one
	Topic      string // the heading that it stands under in help
	Documented bool   // of general use; the others stand under advanced: in a file
	Live       bool   // a running agent takes a new value immediately; else after a restart

	parse func(string) error
}

// Parse reports whether a text can be read as a value, without regard to the other
// settings.
func (k Key) Parse(text string) error { return k.parse(text) }

// setting is a key of configuration C with its reader and writer.
type setting[C any] struct {
	Key

	set func(*C, string) error
	get func(*C) string
}

// documented marks a setting of general use.
func (s setting[C]) documented() setting[C] {
	s.Documented = true
	return s
}

// live marks a setting of which a running agent takes a new value immediately.
func (s setting[C]) live() setting[C] {
	s.Live = true
	return s
}

// under puts settings below a heading.
func under[C any](topic string, settings ...setting[C]) []setting[C] {
	for i := range settings {
		settings[i].Topic = topic
	}
	return settings
}

// codec writes and reads the values of a type.
type codec[V any] struct {
	name  string
	parse func(string) (V, error)
	show  func(V) string
}

// key builds a setting from the place of its value and the way it is written.
func key[C, V any](name, help string, at func(*C) *V, as codec[V]) setting[C] {
	return setting[C]{
		Key: Key{
			Name: name, Help: help, Type: as.name,
			Flag: strings.ReplaceAll(name, ".", "-"),
			Env:  "MRS_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name)),
			parse: func(text string) error {
				_, err := as.parse(text)
				return err
			},
		},
		set: func(c *C, text string) error {
			v, err := as.parse(text)
			if err == nil {
				*at(c) = v
			}
			return err
		},
		get: func(c *C) string { return as.show(*at(c)) },
	}
}

func asText[V ~string]() codec[V] {
	return codec[V]{
		name: "text", parse: func(s string) (V, error) { return V(s), nil },
		show: func(v V) string { return fmt.Sprint(v) },
	}
}

// asWord is one of a few words.
func asWord(words ...string) codec[string] {
	return codec[string]{
		name: strings.Join(words, "|"), show: func(s string) string { return s },
		parse: func(s string) (string, error) {
			if slices.Contains(words, s) {
				return s, nil
			}
			return "", fmt.Errorf("want one of %s, have %q", strings.Join(words, ", "), s)
		},
	}
}

func asList[V ~string]() codec[[]V] {
	return codec[[]V]{
		name: "list",
		parse: func(text string) ([]V, error) {
			var out []V
			for part := range strings.SplitSeq(text, ",") {
				if part = strings.TrimSpace(part); part != "" {
					out = append(out, V(part))
				}
			}
			return out, nil
		},
		show: func(v []V) string {
			var parts []string
			for _, part := range v {
				parts = append(parts, string(part))
			}
			return strings.Join(parts, ",")
		},
	}
}

func asSpan() codec[time.Duration] {
	return codec[time.Duration]{name: "duration", parse: grid.ParseSpan, show: spanText}
}

func asSize() codec[int64] {
	return codec[int64]{name: "size", parse: grid.ParseBytes, show: sizeText}
}

func asRate() codec[int64] {
	return codec[int64]{name: "rate", parse: grid.ParseRate, show: rateText}
}

// asMilli is written as a decimal number and kept in thousandths.
func asMilli() codec[int64] {
	return codec[int64]{
		name: "number",
		parse: func(text string) (int64, error) {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !(v >= 0) || v > 1e9 {
				return 0, fmt.Errorf("want a number of at least 0, such as 1.5, have %q", text)
			}
			return int64(math.Round(v * 1000)), nil
		},
		show: func(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) },
	}
}

func asBool() codec[bool] {
	return codec[bool]{
		name: "true|false", show: strconv.FormatBool,
		parse: func(text string) (bool, error) {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return false, fmt.Errorf("want true or false, have %q", text)
			}
			return v, nil
		},
	}
}

// asCount is a whole number of at least 0.
func asCount[V int | int64](name string) codec[V] {
	return codec[V]{
		name: name, show: func(n V) string { return strconv.FormatInt(int64(n), 10) },
		parse: func(text string) (V, error) {
			v, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(text), "%"), 10, 31)
			if err != nil {
				return 0, fmt.Errorf("want a whole number of at least 0, have %q", text)
			}
			return V(v), nil
		},
	}
}

// asPart is a part of a whole, from 0 to 1.
func asPart() codec[float64] {
	return codec[float64]{
		name: "number", show: func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		parse: func(text string) (float64, error) {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !(v >= 0 && v <= 1) {
				return 0, fmt.Errorf("want a number from 0 to 1, have %q", text)
			}
			return v, nil
		},
	}
}

// asFines is a list of sites, each with a number.
func asFines() codec[map[grid.SiteID]float64] {
	return codec[map[grid.SiteID]float64]{
		name: "list", parse: parseFines,
		show: func(fines map[grid.SiteID]float64) string {
			var parts []string
			for _, site := range slices.Sorted(maps.Keys(fines)) {
				parts = append(parts,
					string(site)+"="+strconv.FormatFloat(fines[site], 'g', -1, 64))
			}
			return strings.Join(parts, ",")
		},
	}
}

func parseFines(text string) (map[grid.SiteID]float64, error) {
	fines := map[grid.SiteID]float64{}
	for part := range strings.SplitSeq(text, ",") {
		site, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		if site == "" && number == "" {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0) || v > 1e9 {
			return nil, fmt.Errorf("want SITE=NUMBER with a number of at least 0, have %q", part)
		}
		if err := grid.SiteID(site).Validate(); err != nil {
			return nil, err
		}
		fines[grid.SiteID(site)] = v
	}
	if len(fines) == 0 {
		return nil, nil
	}
	return fines, nil
}

func asPrice() codec[price] {
	return codec[price]{
		name: "number",
		parse: func(text string) (price, error) {
			text = strings.TrimSpace(text)
			if text == "" {
				return price{}, nil
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(v >= 0) || v > 1e9 {
				return price{}, fmt.Errorf("want a number of at least 0, such as 0.02, have %q", text)
			}
			return price{Named: true, CoreHour: v}, nil
		},
		show: func(p price) string {
			if !p.Named {
				return ""
			}
			return strconv.FormatFloat(p.CoreHour, 'g', -1, 64)
		},
	}
}

func asHours() codec[yield.Hours] {
	return codec[yield.Hours]{name: "hours", parse: yield.ParseHours, show: yield.Hours.String}
}

func asKinds() codec[[]grid.WorkKind] {
	show := func(kinds []grid.WorkKind) string {
		var words []string
		for _, k := range kinds {
			words = append(words, k.String())
		}
		return strings.Join(words, ",")
	}
	return codec[[]grid.WorkKind]{name: "list", parse: parseKinds, show: show}
}

// asSigners is a list, whose parts are written as signed.ParseSigner reads them.
func asSigners() codec[[]grid.Signer] {
	return codec[[]grid.Signer]{
		name: "list",
		parse: func(text string) ([]grid.Signer, error) {
			var out []grid.Signer
			for part := range strings.SplitSeq(text, ",") {
				if part = strings.TrimSpace(part); part == "" {
					continue
				}
				if len(out) == grid.MaxSigners {
					return nil, fmt.Errorf("want at most %d signers", grid.MaxSigners)
				}
				s, err := signed.ParseSigner(part)
				if err != nil {
					return nil, err
				}
				out = append(out, s)
			}
			return out, nil
		},
		show: func(list []grid.Signer) string {
			var parts []string
			for _, s := range list {
				parts = append(parts, signed.FormatSigner(s))
			}
			return strings.Join(parts, ",")
		},
	}
}

func parseKinds(text string) ([]grid.WorkKind, error) {
	var kinds []grid.WorkKind
	for part := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(part) {
		case "":
		case grid.KindWasm.String():
			kinds = append(kinds, grid.KindWasm)
		case grid.KindCommand.String():
			kinds = append(kinds, grid.KindCommand)
		default:
			return nil, fmt.Errorf("kind of work %q: want wasm, command or both with a comma", part)
		}
	}
	if len(kinds) == 0 {
		return nil, errors.New("no kind of work: want wasm, command or both; " +
			"to give nothing, pause the site")
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), nil
}

// sizeText writes a size exactly, with the largest unit that divides it: "4GiB".
func sizeText(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := int64(1) << (10 * (4 - i)); n != 0 && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// rateText writes a rate exactly: "50Mbit/s".
func rateText(bps int64) string {
	for i, unit := range []string{"Gbit/s", "Mbit/s", "kbit/s"} {
		if size := int64(math.Pow(1000, float64(3-i))); bps != 0 && bps%size == 0 {
			return strconv.FormatInt(bps/size, 10) + unit
		}
	}
	return strconv.FormatInt(bps, 10) + "bit/s"
}

// spanText writes a duration exactly and without zeros: "10m", "7d".
func spanText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if short, cut := strings.CutSuffix(text, "m0s"); cut {
		text = short + "m"
	}
	if short, cut := strings.CutSuffix(text, "h0m"); cut {
		text = short + "h"
	}
	return text
}
