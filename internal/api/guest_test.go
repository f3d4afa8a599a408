package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// gossip answers about jobs with a text in each field that can have one: "secret JobView.Hint".
type gossip struct{ *spy }

func (gossip) Jobs(context.Context, view.JobQuery) ([]view.JobView, error) {
	job := told[view.JobView]("JobView")
	job.Phase = view.PhaseWaiting
	return []view.JobView{job}, nil
}

func (gossip) Tasks(context.Context, grid.JobID, uint32, int) ([]view.TaskView, error) {
	return []view.TaskView{told[view.TaskView]("TaskView")}, nil
}

func (gossip) Offers(context.Context, grid.JobID) (view.OfferTable, error) {
	table := told[view.OfferTable]("OfferTable")
	refusal := table.Rows[0]
	refusal.Rank, refusal.Reason = 0, grid.ReasonMemory
	table.Rows = append(table.Rows, refusal)
	return table, nil
}

func (g gossip) Rounds(ctx context.Context, id grid.JobID) ([]view.OfferTable, error) {
	table, err := g.Offers(ctx, id)
	return []view.OfferTable{table}, err
}

// told has a text in each string of it, which names the field, and one element in each list.
func told[T any](name string) T {
	var v T
	tell(reflect.ValueOf(&v).Elem(), name)
	return v
}

func tell(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("secret " + path + ".")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		tell(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		tell(v.Index(0), path)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[view.Time]() {
			return
		}
		for field := range v.Type().Fields() {
			tell(v.FieldByIndex(field.Index), path+"."+field.Name)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	default: // bool, and a map of phases to numbers
	}
}

// TestTheTextsThatGuestsGet holds each text about jobs that a guest is sent against a list: a field
// that is added to a view later is not among them until it is written here and in guest.go.
func TestTheTextsThatGuestsGet(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, gossip{&spy{}}, nil)
	secrets := regexp.MustCompile(`secret ([A-Za-z.]+)\.`)
	job := "/jobs/" + sampleID
	want := map[string][]string{
		"/jobs": {
			"JobView.After.ID", "JobView.After.Phase", "JobView.For", "JobView.ID",
			"JobView.Kind", "JobView.Name", "JobView.Promise.State",
		},
		job + "/tasks": {
			"TaskView.Attempts.Cause", "TaskView.Attempts.Domain", "TaskView.Attempts.Site",
			"TaskView.Attempts.SiteName", "TaskView.Cause", "TaskView.Copies.ID",
			"TaskView.Copies.Phase", "TaskView.Copies.Site", "TaskView.Copies.SiteName",
			"TaskView.Copies.Vote", "TaskView.Domain", "TaskView.ID", "TaskView.Move.Phase",
			"TaskView.Move.Reason", "TaskView.Phase", "TaskView.Promise.State",
			"TaskView.Saved.Site", "TaskView.Saved.SiteName", "TaskView.Site",
			"TaskView.SiteName",
		},
		job + "/offers": {
			"OfferTable.Job", "OfferTable.Map", "OfferTable.Rows.Further.Dimension",
			"OfferTable.Rows.Name", "OfferTable.Rows.Site",
		},
	}
	want[job+"/rounds"] = want[job+"/offers"]
	guest, owner := signIn(t, socket, true), signIn(t, socket, false)
	for path, texts := range want {
		_, body := guest.send(t, "GET", "/api/v1"+path, nil)
		var got []string
		for _, found := range secrets.FindAllStringSubmatch(body, -1) {
			got = append(got, found[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(texts, slices.Compact(got)); diff != "" {
			t.Errorf("GET %s (-listed +sent to a guest):\n%s", path, diff)
		}
		_, whole := owner.send(t, "GET", "/api/v1"+path, nil)
		if n := len(secrets.FindAllString(whole, -1)); n <= len(got) {
			t.Errorf("GET %s: an owner gets %d texts, a guest %d", path, n, len(got))
		}
	}
	_, body := guest.send(t, "GET", "/api/v1/jobs", nil)
	if !strings.Contains(body, `"hint":"waits for other jobs"`) {
		t.Errorf("a guest is not told why a job waits: %s", body)
	}
	_, body = guest.send(t, "GET", "/api/v1"+job+"/offers", nil)
	if !strings.Contains(body, `"refusal":"`+grid.ReasonMemory.String()+`"`) {
		t.Errorf("a guest is not told why a site refuses: %s", body)
	}
}

// TestWhyAJobWaitsForGuests has a few words of the API's own for each case.
func TestWhyAJobWaitsForGuests(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	socket, _ := serve(t, agent, nil)
	id, err := agent.Submit(t.Context(), sampleJob(), "")
	if err != nil {
		t.Fatal(err)
	}
	b := signIn(t, socket, true)
	for _, c := range []struct {
		phase      view.Phase
		said, want string
	}{
		{view.PhaseWaiting, "secret", "waits until a site has capacity"},
		{view.PhaseWaiting, "", ""},
		{view.PhaseSuspended, "secret", "the owner of its site needs the machine"},
		{view.PhaseRunning, "secret", ""},
		{view.PhaseRefused, "secret", "no site can take it"},
	} {
		for i := range sampleJob().Count {
			agent.Set(id, i, func(task *view.TaskView) { task.Phase = c.phase })
		}
		agent.Explain(id, c.said, "secret")
		answer, body := b.send(t, "GET", "/api/v1/jobs", nil)
		var jobs []view.JobView
		if err := json.Unmarshal([]byte(body), &jobs); err != nil || len(jobs) != 1 {
			t.Fatalf("GET /jobs = %d %s", answer.StatusCode, body)
		}
		if jobs[0].Hint != c.want || strings.Contains(body, "secret") {
			t.Errorf("%s, %q: a guest reads %q in %s, want %q",
				c.phase, c.said, jobs[0].Hint, body, c.want)
		}
	}
}

// secretJob is a job that has a word of its own at each place where a user can write one, but for
// its name. It is searched for by them.
func secretJob() grid.Job {
	job := sampleJob()
	job.Spec.Name = "public"
	job.Spec.Args = []string{"secret-argument"}
	job.Spec.Env = []grid.EnvVar{{Name: "SECRET_VARIABLE", Value: "secret-value"}}
	job.Spec.Inputs = []grid.Input{{Path: "/in/secret-input", CID: "bin"}}
	job.Spec.Outputs = []grid.Output{{Path: "/out/secret-output", To: "secret-target"}}
	return job
}

// TestNoAnswerToAGuestHasASecret makes a job with a secret in its command, its environment, its
// files, its items, its log, its ends and its events, and asks for all that there is.
func TestNoAnswerToAGuestHasASecret(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	socket, _ := serve(t, agent, nil)
	id, err := agent.Submit(t.Context(), secretJob(), "secret-key")
	if err != nil {
		t.Fatal(err)
	}
	agent.Explain(id, "secret-hint", "secret-reason")
	agent.Print(string(id)+".0", "stdout", "secret-log")
	result := agent.Store([]byte("secret-result"), false)
	agent.Set(id, 0, func(task *view.TaskView) {
		task.Item, task.Text, task.Phase = "secret-item", "secret-text", view.PhaseFailed
		task.Outputs = []view.OutputView{
			{Path: "/out/secret-output", To: "secret-target", CID: result.CID},
		}
		task.Attempts = []view.AttemptView{
			{Token: 1, Site: "s", Cause: "site restarted: secret-cause", Text: "secret-end"},
		}
	})
	agent.Append(view.Event{Kind: "last", Job: id, Text: "secret-event"})
	filled := strings.NewReplacer(sampleID, string(id), "bfile", string(result.CID))
	asked := 0
	owner, guest := signIn(t, socket, false), signIn(t, socket, true)
	told, shown := "", 0
	for _, o := range operations(t) {
		path := filled.Replace(o[1])
		if strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/session") {
			continue // below; and it would sign out
		}
		answer, body := guest.send(t, o[0], path, nil)
		asked++
		if answer.StatusCode == http.StatusOK {
			shown++
		}
		text := strings.ToLower(body + fmt.Sprint(answer.Header))
		if strings.Contains(text, "secret") {
			t.Errorf("a guest: %s %s = %d %s", o[0], path, answer.StatusCode, body)
		}
		if o[0] == http.MethodGet {
			_, body = owner.send(t, o[0], path, nil)
			told += body
		}
	}
	if asked < 50 || shown < 8 {
		t.Errorf("%d operations were tried, %d were shown", asked, shown)
	}
	for _, secret := range []string{
		"argument", "value", "input", "output", "hint", "log", "result", "item", "text", "cause",
	} {
		if !strings.Contains(told, "secret-"+secret) {
			t.Errorf("no answer has secret-%s for its owner: the test hides nothing there", secret)
		}
	}
	lines := guest.events(t)
	for text := ""; !strings.Contains(text, `"kind":"last"`); text = lines.Text() {
		if strings.Contains(text, "secret") || !lines.Scan() {
			t.Fatalf("a guest follows %s", text)
		}
	}
	if strings.Contains(lines.Text(), "secret") {
		t.Errorf("a guest follows %s", lines.Text())
	}
}
