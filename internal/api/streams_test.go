package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestDataSaysWhatItIs holds the headers of data against what is stored.
func TestDataSaysWhatItIs(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &spy{}, nil)
	for _, c := range []struct{ method, cid, kind, length, dir, executable string }{
		{"GET", "bfile", "application/octet-stream", "4", "false", "false"},
		{"GET", "bprogram", "application/octet-stream", "4", "false", "true"},
		{"GET", "bdir", "application/x-tar", "", "true", "false"}, // a tar stream is longer than 4 B
		{"HEAD", "bfile", "", "", "false", "false"},
		{"HEAD", "bprogram", "", "", "false", "true"},
		{"HEAD", "bdir", "", "", "true", "false"},
	} {
		answer, body := request{method: c.method, path: "/data/" + c.cid}.send(t, socket)
		want, sniff := "", ""
		if c.method == http.MethodGet {
			want, sniff = "data", "nosniff"
		}
		if answer.StatusCode != http.StatusOK || body != want {
			t.Errorf("%s %s = %d %q, want 200 %q", c.method, c.cid, answer.StatusCode, body, want)
		}
		for name, want := range map[string]string{
			"Content-Type": c.kind, "Content-Length": c.length, "Mrs-Bytes": "4", "Mrs-Dir": c.dir,
			"Mrs-Executable": c.executable, "X-Content-Type-Options": sniff,
		} {
			if have := answer.Header.Get(name); have != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.cid, name, have, want)
			}
		}
	}
}

func TestALogIsSentAsItStands(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &spy{}, nil)
	answer, body := request{method: "GET", path: "/tasks/" + sampleID + "/logs"}.send(t, socket)
	if answer.StatusCode != http.StatusOK || body != "log" ||
		answer.Header.Get("Content-Type") != "application/octet-stream" ||
		answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("GET logs = %d %v %q", answer.StatusCode, answer.Header, body)
	}
}

// piece comes from a source, and tells when it is closed.
type piece struct {
	io.Reader
	closed chan struct{}
}

func (p piece) Close() error {
	close(p.closed)
	return nil
}

// source has data that comes from a reader.
type source struct {
	spy
	ref  view.DataRef
	body io.ReadCloser
}

func (s *source) GetData(context.Context, grid.CID) (view.DataRef, io.ReadCloser, error) {
	return s.ref, s.body, nil
}

// start asks for what flows, and gives the open answer.
func start(t *testing.T, socket, path string, header ...string) io.ReadCloser {
	t.Helper()
	question, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		question.Header.Set(header[i], header[i+1])
	}
	answer, err := overSocket(socket).Do(question)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer.Body
}

// TestABrokenDownloadIsNoWholeOne lets the source break off: the reader is told, also where
// the length was not known before. What was read from is closed.
func TestABrokenDownloadIsNoWholeOne(t *testing.T) {
	t.Parallel()
	for _, ref := range []view.DataRef{{CID: "bx", Bytes: 8}, {CID: "bx", Bytes: 8, Dir: true}} {
		half := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("no block")))
		body := piece{half, make(chan struct{})}
		agent := &source{ref: ref, body: body}
		socket, _ := serve(t, agent, nil)
		text, err := io.ReadAll(start(t, socket, "/data/bx"))
		if string(text) != "half" || err == nil {
			t.Errorf("%+v: read %q, %v, want half of it and an error", ref, text, err)
		}
		<-body.closed
	}
}

// TestDataFlowsAsItComes reads each piece before the source has the next one, and the first
// answer before there is any.
func TestDataFlowsAsItComes(t *testing.T) {
	t.Parallel()
	from, to := io.Pipe()
	agent := &source{ref: view.DataRef{CID: "bx", Dir: true}, body: from}
	socket, _ := serve(t, agent, nil)
	body := start(t, socket, "/data/bx")
	for _, want := range []string{"one", "two"} {
		if _, err := io.WriteString(to, want); err != nil {
			t.Fatal(err)
		}
		have := make([]byte, len(want))
		if _, err := io.ReadFull(body, have); err != nil || string(have) != want {
			t.Errorf("read %q, %v, want %q", have, err, want)
		}
	}
	_ = body.Close() // the reader goes
	for err := error(nil); err == nil; {
		_, err = io.WriteString(to, "more") // until nobody reads any more
	}
}

// readTo reads until the text ends as wanted, and gives all of it.
func readTo(t *testing.T, body io.Reader, end string) string {
	t.Helper()
	var text strings.Builder
	for buffer := make([]byte, 1); !strings.HasSuffix(text.String(), end); {
		if _, err := io.ReadFull(body, buffer); err != nil {
			t.Fatalf("after %q: %v", text.String(), err)
		}
		text.Write(buffer)
	}
	return text.String()
}

// events are as many, from ID 1.
func events(n int) []view.Event {
	all := make([]view.Event, n)
	for i := range all {
		all[i] = view.Event{ID: uint64(i + 1), Kind: "test", Time: view.At(clock())}
	}
	return all
}

// TestEvents holds a stream of events against its text: after what was asked for each comes
// once, in order, and heartbeats follow while there are no more.
func TestEvents(t *testing.T) {
	t.Parallel()
	const welcome, beat = ": welcome\n\n", ": heartbeat\n\n"
	two, three := eventText(2), eventText(3)
	for _, c := range []struct {
		query  string
		header []string
		want   string
	}{
		{"", nil, welcome + eventText(1) + two + three + beat + beat},
		{"?after=2", nil, welcome + three + beat + beat},
		{"?after=2", []string{"Last-Event-ID", "1"}, welcome + two + three + beat + beat},
		{"?now=true", []string{"Last-Event-ID", "1"}, welcome + two + three + beat + beat},
		{"?now=true", nil, welcome + beat + beat},
		{"?now=false", nil, welcome + eventText(1) + two + three + beat + beat},
	} {
		agent := &spy{events: events(3)}
		socket, _ := serve(t, agent, nil)
		body := start(t, socket, "/events"+c.query, c.header...)
		if text := readTo(t, body, beat+beat); text != c.want {
			t.Errorf("events%s %q:\n%s\nwant\n%s", c.query, c.header, text, c.want)
		}
	}
}

// eventText has one of these events as it is sent.
func eventText(id int) string {
	const form = "id: %d\nevent: test\n" +
		`data: {"id":%d,"time":"2026-01-02T03:04:05Z","kind":"test"}` + "\n\n"
	return fmt.Sprintf(form, id, id)
}

// TestManyEventsComeInPortions asks for more than are taken at a time.
func TestManyEventsComeInPortions(t *testing.T) {
	t.Parallel()
	agent := &spy{events: events(300)}
	socket, _ := serve(t, agent, func(o *api.Options) { o.Heartbeat = time.Hour })
	text := readTo(t, start(t, socket, "/events"), eventText(300))
	for i := range 300 {
		if n := strings.Count(text, eventText(i+1)); n != 1 {
			t.Errorf("event %d comes %d times", i+1, n)
		}
	}
	if a := agent.take(); !strings.HasPrefix(a, "events 0 256; events 256 256") {
		t.Errorf("the agent was asked %q, want for 256 at a time", a)
	}
}

// TestEventsBreakOff ends the stream where the agent fails, so that the reader knows.
func TestEventsBreakOff(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &spy{err: errors.New("the log is gone")}, nil)
	text, err := io.ReadAll(start(t, socket, "/events"))
	if string(text) != ": welcome\n\n" || err == nil {
		t.Errorf("events of an agent that fails: %q, %v, want an error after the welcome", text, err)
	}
}

// TestEventsEndWithTheAgent ends the agent: the reader of its events sees the end.
func TestEventsEndWithTheAgent(t *testing.T) {
	t.Parallel()
	socket, cancel, served := serving(t, &spy{})
	body := start(t, socket, "/events")
	readTo(t, body, ": welcome\n\n")
	cancel()
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("after the agent ended: %q, %v, want the end", rest, err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
