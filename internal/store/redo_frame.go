package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A frame holds parts: each is its length as a uvarint, and so many bytes. A number is a part
// without bytes.

// savedHead has what a Save holds beside entries and facts.
type savedHead struct {
	Ballot  *standby.Ballot  `json:"b,omitempty"`
	Base    standby.Position `json:"s,omitzero"`
	Applied standby.Position `json:"a,omitzero"`
	Conf    *standby.Conf    `json:"c,omitempty"`
}

func encodeChange(c change) []byte {
	text := appendRows(appendPart(nil, []byte(c.machine)), c.facts)
	text = binary.AppendUvarint(text, uint64(len(c.saves)))
	for _, save := range c.saves {
		text = appendSave(text, save)
	}
	return text
}

func appendSave(text []byte, save standby.Save) []byte {
	head, _ := json.Marshal(savedHead{save.Ballot, save.Base, save.Applied, save.Conf}) // numbers
	text = appendRows(appendPart(text, head), save.Facts)
	text = binary.AppendUvarint(text, uint64(len(save.Entries)))
	for _, e := range save.Entries {
		text = appendPart(binary.AppendUvarint(text, e.Index), encodeEntry(e))
	}
	return text
}

// appendRows writes facts. One without a value removes its row: a value begins with a byte more.
func appendRows(text []byte, facts []step.Fact) []byte {
	text = binary.AppendUvarint(text, uint64(len(facts)))
	for _, f := range facts {
		text = appendPart(appendPart(text, []byte(f.Kind)), []byte(f.Key))
		if f.Value == nil {
			text = binary.AppendUvarint(text, 0)
			continue
		}
		text = append(binary.AppendUvarint(text, uint64(len(f.Value))+1), f.Value...)
	}
	return text
}

func appendPart(text, part []byte) []byte {
	return append(binary.AppendUvarint(text, uint64(len(part))), part...)
}

// parts reads what the functions above have written. After an error it reads nothing.
type parts struct {
	text []byte
	err  error
}

func decodeChange(text []byte) (change, error) {
	p := &parts{text: text}
	c := change{machine: string(p.part()), facts: p.rows()}
	for range p.count() {
		c.saves = append(c.saves, p.save())
	}
	if p.err == nil && len(p.text) > 0 {
		p.fail("%d bytes follow", len(p.text))
	}
	return c, p.err
}

func (p *parts) fail(format string, args ...any) {
	if p.err == nil {
		what := fmt.Sprintf(format, args...)
		p.err = fmt.Errorf("%w: frame of %s: %s", ErrCorrupt, redoFile, what)
	}
	p.text = nil
}

func (p *parts) number() uint64 {
	n, size := binary.Uvarint(p.text)
	if size <= 0 {
		p.fail("want a number")
		return 0
	}
	p.text = p.text[size:]
	return n
}

// count reads how many follow: each takes a byte at least.
func (p *parts) count() int {
	n := p.number()
	if n > uint64(len(p.text)) {
		p.fail("want %d more, in %d bytes", n, len(p.text))
		return 0
	}
	return int(n)
}

func (p *parts) part() []byte { return p.bytes(p.count()) }

func (p *parts) bytes(n int) []byte {
	part := p.text[:n:n]
	p.text = p.text[n:]
	return part
}

func (p *parts) rows() (facts []step.Fact) {
	for range p.count() {
		f := step.Fact{Kind: string(p.part()), Key: string(p.part())}
		if n := p.count(); n > 0 {
			f.Value = p.bytes(n - 1)
		}
		facts = append(facts, f)
	}
	return facts
}

func (p *parts) save() (save standby.Save) {
	var head savedHead
	if text := p.part(); p.err == nil {
		if err := json.Unmarshal(text, &head); err != nil {
			p.fail("%s", err)
		}
	}
	save.Ballot, save.Base, save.Applied = head.Ballot, head.Base, head.Applied
	save.Conf, save.Facts = head.Conf, p.rows()
	for range p.count() {
		index := p.number()
		e, err := decodeEntry(entryKey(index), p.part())
		if p.err == nil && err != nil {
			p.fail("%s", err)
		}
		save.Entries = append(save.Entries, e)
	}
	return save
}
