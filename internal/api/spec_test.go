package api_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// TestSchemasAreTheTypes holds the specification's schemas against the Go types
// that stand for them, so that a field cannot be added to one side only.
func TestSchemasAreTheTypes(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]any{
		"Problem": view.Problem{}, "JobView": view.JobView{}, "Earlier": view.Earlier{},
		"JobDetail": view.JobDetail{}, "TaskView": view.TaskView{},
		"PromiseView": view.PromiseView{}, "Progress": view.Progress{}, "Printed": view.Printed{},
		"SavedView": view.SavedView{},
		"CopyView":  view.CopyView{},
		"MoveView":  view.MoveView{}, "MoveRequest": view.MoveRequest{},
		"OutputView": view.OutputView{}, "AttemptView": view.AttemptView{},
		"DataRef": view.DataRef{},
		"JobSpec": view.JobSpec{}, "InputSpec": view.InputSpec{}, "OutputSpec": view.OutputSpec{},
		"TakeSpec": view.TakeSpec{}, "SignatureSpec": view.SignatureSpec{},
		"EnvSpec":  view.EnvSpec{},
		"ItemSpec": view.ItemSpec{}, "WeightsSpec": view.WeightsSpec{}, "AxisSpec": view.AxisSpec{},
		"Further": view.Further{}, "Resources": view.Resources{}, "OfferTable": view.OfferTable{},
		"OfferRow": view.OfferRow{}, "SiteRow": view.SiteRow{}, "RunningTask": view.RunningTask{},
		"Group": view.Group{}, "GroupMember": view.GroupMember{},
		"GroupRefusal": view.GroupRefusal{},
		"Controller":   view.Controller{}, "ControlFailed": view.ControlFailed{},
		"AgentStatus": view.AgentStatus{}, "Reach": view.Reach{},
		"FaultRow": view.FaultRow{}, "CountedWord": view.CountedWord{},
		"Notice": view.Notice{}, "Availability": view.Availability{},
		"Outlook": view.Outlook{}, "Forecast": view.Forecast{},
		"Invitation": view.Invitation{}, "OpenInvitation": view.OpenInvitation{},
		"FleetRow":  view.FleetRow{},
		"MemberRow": view.MemberRow{}, "InviteRow": view.InviteRow{},
		"InvitedSite": view.InvitedSite{},
		"LinkPolicy":  view.LinkPolicy{}, "PolicyChange": view.PolicyChange{},
		"LinkRow": view.LinkRow{}, "LinkInvite": view.LinkInvite{}, "EndedLink": view.EndedLink{},
		"Links": view.Links{}, "LinkInvitation": view.LinkInvitation{},
		"Rotation":     view.Rotation{},
		"NeighbourRow": view.NeighbourRow{},
		"Given":        view.Given{}, "GivenDay": view.GivenDay{}, "GivenShare": view.GivenShare{},
		"Gateway": view.Gateway{}, "Deputy": view.Deputy{},
		"Members": view.Members{}, "CheckResult": view.CheckResult{},
		"Event": view.Event{}, "MachineView": view.MachineView{}, "Standing": view.Standing{},
		"OwnerView": view.OwnerView{}, "Wall": view.Wall{},
		"Reservation": view.Reservation{}, "ReservedPlace": view.ReservedPlace{},
		"Planning": view.Planning{}, "PlanView": view.PlanView{},
		"PlanEntry": view.PlanEntry{}, "Configuration": view.Configuration{}, "Setting": view.Setting{},
		"PageLink": view.PageLink{},
	}
	for name, ref := range spec.Components.Schemas {
		if _, mapped := ref.Value.Extensions["x-go-type"]; !mapped || name == "Phase" {
			continue
		}
		value, known := types[name]
		if !known {
			t.Errorf("schema %s: the test does not know its type", name)
			continue
		}
		var fields, required []string
		for field := range reflect.TypeOf(value).Fields() {
			tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields = append(fields, tag)
			if options == "" {
				required = append(required, tag)
			}
		}
		if diff := cmp.Diff(
			slices.Sorted(slices.Values(fields)), slices.Sorted(maps.Keys(ref.Value.Properties)),
		); diff != "" {
			t.Errorf("%s: fields (-type +schema):\n%s", name, diff)
		}
		if diff := cmp.Diff(
			slices.Sorted(slices.Values(required)), slices.Sorted(slices.Values(ref.Value.Required)),
		); diff != "" {
			t.Errorf("%s: required (-type +schema):\n%s", name, diff)
		}
	}
	var phases []string
	for _, phase := range view.Phases() {
		phases = append(phases, string(phase))
	}
	var specified []string
	for _, phase := range spec.Components.Schemas["Phase"].Value.Enum {
		specified = append(specified, phase.(string)) //nolint:forcetypeassert // a panic says it
	}
	if diff := cmp.Diff(phases, specified); diff != "" {
		t.Errorf("phases (-type +schema):\n%s", diff)
	}
}

// TestListsHavePages finds the operations that answer with a list, and holds them against those
// that give a page of it. The others have a bound.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bounded := []string{
		"/given",      // 42 days
		"/neighbours", // protocol.MaxNeighbours
	}
	found := map[string]string{}
	for path, item := range spec.Paths.Map() {
		if item.Get == nil || slices.Contains(bounded, path) {
			continue
		}
		answer := item.Get.Responses.Status(200).Value.Content.Get("application/json")
		if path == "/members" || answer != nil && answer.Schema.Value.Type.Is("array") {
			var names []string
			for _, p := range item.Get.Parameters {
				names = append(names, p.Value.Name)
			}
			found[path] = strings.Join(names, " ")
		}
	}
	want := map[string]string{
		"/jobs": "since before prefix limit", "/jobs/{id}/tasks": "from limit",
		"/jobs/{id}/rounds": "limit after",
	}
	for _, path := range pagedLists {
		want[path] = "limit after"
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("parameters of lists (-want +specified):\n%s", diff)
	}
	limit := spec.Components.Parameters["PageLimit"].Value.Schema.Value
	if limit.Default != 1000.0 || *limit.Min != 1 || *limit.Max != 10_000 {
		t.Errorf("limit is %v to %v, else %v, want 1 to 10000, else 1000",
			*limit.Min, *limit.Max, limit.Default)
	}
}
