package grid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestClaimsThatAreRefused(t *testing.T) {
	t.Parallel()
	digest, root := strings.Repeat("0f", 64), strings.Repeat("0f", 32)
	good := grid.Signature{Of: grid.SignedTemplate, Digest: digest, Text: "text"}
	for _, s := range []grid.Signature{
		{},
		good,
		{Of: grid.SignedModule, Digest: digest, Text: strings.Repeat("x", grid.MaxSignatureText)},
		{
			Of: grid.SignedTemplate, Digest: digest, Text: "x",
			Items: grid.MaxSignedItems, Root: root,
		},
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+.60v: %v", s, err)
		}
	}
	for name, change := range map[string]func(*grid.Signature){
		"no part":            func(s *grid.Signature) { s.Of = 0 },
		"another part":       func(s *grid.Signature) { s.Of = 3 },
		"a short digest":     func(s *grid.Signature) { s.Digest = digest[2:] },
		"capitals":           func(s *grid.Signature) { s.Digest = strings.ToUpper(digest) },
		"no digest":          func(s *grid.Signature) { s.Digest = strings.Repeat("x", 128) },
		"no text":            func(s *grid.Signature) { s.Text = "" },
		"megabytes":          func(s *grid.Signature) { s.Text = strings.Repeat("x", 5<<20) },
		"too many items":     func(s *grid.Signature) { s.Items, s.Root = 1<<14+1, root },
		"items without root": func(s *grid.Signature) { s.Items = 1 },
		"a root alone":       func(s *grid.Signature) { s.Root = root },
		"items of a module": func(s *grid.Signature) {
			s.Of, s.Items, s.Root = grid.SignedModule, 1, root
		},
	} {
		s := good
		change(&s)
		err := s.Validate()
		if !errors.Is(err, grid.ErrInvalid) || len(err.Error()) > 200 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (grid.Item{Proof: strings.Repeat("x", 1<<10+1)}).Validate(); err == nil {
		t.Error("a proof without end")
	}
	for part, word := range map[grid.SignedPart]string{
		grid.SignedTemplate: "template", grid.SignedModule: "module", 9: "unknown",
	} {
		if part.String() != word {
			t.Errorf("part %d is a %s", part, part)
		}
	}
}
