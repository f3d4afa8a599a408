package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const modulePath = "github.com/mrsmesh/mrsmesh"

// room says what a package may import of the project. Rooms are written as in
// ARCHITECTURE.md: "grid" is pkg/grid, "store" is internal/store, "lrm/*" is
// every room below internal/lrm, "*" is every room of the shell.
type room struct {
	level   int    // only in pkg/: imports must stand strictly lower
	imports string // what any file may import
	tests   string // what test files may import in addition
}

// declaredRooms is the table of rooms. One that does not exist yet is fine; a
// package that is not named here fails.
func declaredRooms() map[string]room {
	return map[string]room{
		"pkg/argument": {level: 0},
		"pkg/grid":     {level: 0},

		"pkg/index":           {level: 1, imports: "argument grid"},
		"pkg/avail":           {level: 1, imports: "argument grid"},
		"pkg/fault":           {level: 1, imports: "grid"},
		"pkg/capacity":        {level: 1, imports: "grid"},
		"pkg/cache":           {level: 1, imports: "grid"},
		"pkg/ckpt":            {level: 1, imports: "argument"},
		"pkg/protocol":        {level: 1, imports: "grid protocol/wirepb"},
		"pkg/protocol/wirepb": {level: 0},
		"pkg/metrics":         {level: 1, imports: "argument"},
		"pkg/workload":        {level: 1, imports: "grid"},
		"pkg/yield":           {level: 1},
		"pkg/signed":          {level: 1, imports: "grid"},

		"pkg/plan":       {level: 2, imports: "grid capacity"},
		"pkg/plan/batch": {level: 2, imports: "workload"},
		"pkg/step":       {level: 2, imports: "grid avail protocol"},

		"pkg/remap": {level: 2, imports: "argument", tests: "papers/remap"},

		"pkg/site": {
			level:   3,
			imports: "grid index avail ckpt fault capacity cache protocol plan signed step",
		},
		"pkg/broker":  {level: 3, imports: "grid index avail fault protocol step"},
		"pkg/standby": {level: 3, imports: "grid protocol step", tests: "workload"},
		"pkg/domain":  {level: 3, imports: "grid protocol remap step"},
		"pkg/border":  {level: 3, imports: "grid protocol step"},

		"pkg/sim": {
			level: 4, imports: "grid avail protocol workload plan step site broker domain border",
		},
		"pkg/sim/baseline": {level: 4, imports: "argument grid plan workload", tests: "plan/batch"},
		"pkg/sim/failing":  {level: 4, imports: "argument avail ckpt fault grid workload"},
		"pkg/sim/remapping": {
			level: 4, imports: "argument remap workload", tests: "papers/remap",
		},

		// What the papers say and no program uses. Other rooms may not import these.
		"pkg/papers/metrics":    {level: 1, imports: "argument"},
		"pkg/papers/remap":      {level: 1, imports: "argument"},
		"pkg/papers/fibr":       {level: 2, imports: "fault grid"},
		"pkg/papers/nodes":      {level: 2, imports: "argument avail grid"},
		"pkg/papers/virtualmap": {level: 2, imports: "argument grid index"},
		"pkg/papers/openccs":    {level: 3, imports: "argument grid plan"},

		"internal/obs":           {},
		"internal/lrm":           {imports: "grid lrm/scratch", tests: "lrm/*"},
		"internal/lrm/scratch":   {},
		"internal/lrm/lrmtest":   {imports: "grid lrm", tests: "lrm/*"},
		"internal/lrm/fake":      {imports: "grid lrm", tests: "lrm/lrmtest"},
		"internal/lrm/supervise": {imports: "grid lrm"},
		"internal/lrm/wasm":      {imports: "grid lrm lrm/supervise", tests: "lrm/lrmtest"},
		"internal/lrm/native": {
			imports: "grid lrm lrm/scratch lrm/supervise", tests: "lrm/lrmtest",
		},
		"internal/lrm/container": {imports: "grid lrm", tests: "lrm/lrmtest"},
		"internal/lrm/slurm":     {imports: "grid lrm", tests: "lrm/lrmtest"},
		"internal/hostinfo":      {imports: "grid yield durable"},
		"internal/config":        {imports: "grid signed yield durable"},
		"internal/jobfile":       {imports: "grid signed"},
		"internal/jobmap":        {imports: "grid", tests: "jobfile"},
		"internal/sbatch":        {imports: "grid", tests: "jobfile"},
		"internal/view":          {imports: "grid"},
		"internal/tui":           {imports: "grid view"},
		"internal/durable":       {tests: "powercut"},
		"internal/powercut":      {},
		"internal/member":        {imports: "grid protocol durable"},
		"internal/owner":         {imports: "grid yield", tests: "suspend/suspendtest"},
		"internal/history":       {imports: "grid avail durable"},
		"internal/given":         {imports: "grid durable"},
		"internal/netlab":        {},
		"internal/freeport":      {},
		"internal/localmesh":     {imports: "grid config api/client lrm/supervise view"},
		"internal/scripttest":    {imports: "grid config freeport localmesh lrm/native"},
		"internal/guides":        {tests: "*"},
		"internal/bench":         {imports: "grid protocol broker step *", tests: "*"},
		"internal/chaos":         {imports: "grid audit api/client config localmesh netlab view"},
		"internal/soak":          {imports: "grid api/client config localmesh view"},
		"internal/crosscheck":    {},
		"internal/hostile":       {},
		"internal/mutants":       {},
		"internal/cast":          {},
		"internal/p2p":           {imports: "grid protocol obs member durable p2p/*"},
		"internal/p2p/gossip":    {imports: "grid protocol p2p/wire"},
		"internal/p2p/relay":     {imports: "grid p2p/wire"},
		"internal/p2p/join":      {imports: "grid protocol member p2p/wire"},
		"internal/p2p/death":     {imports: "grid protocol p2p/wire"},
		"internal/p2p/gate":      {imports: "grid protocol member p2p/wire"},
		"internal/p2p/wire":      {imports: "grid protocol obs durable"},
		"internal/data":          {imports: "grid obs durable", tests: "powercut"},
		"internal/data/intake":   {imports: "grid data crypt durable"},
		"internal/crypt":         {imports: "grid"},
		"internal/suspend":       {tests: "suspend/suspendtest"},

		"internal/suspend/suspendtest": {},

		"internal/install": {imports: "durable"},
		"internal/systemd": {},
		"internal/dist":    {tests: "localmesh"},

		"internal/store": {
			imports: "grid protocol step standby obs durable", tests: "powercut",
		},
		"internal/scenario": {imports: "grid", tests: "*"},
		"internal/play": {
			imports: "grid protocol step site broker sim audit scenario store", tests: "*",
		},
		"internal/agent": {
			imports: "grid avail protocol plan signed step site broker standby domain border " +
				"yield lrm member owner p2p data data/intake crypt store obs hostinfo history " +
				"given view durable",
			tests: "*",
		},
		"internal/agent/backend": {
			imports: "grid avail protocol plan step site broker yield agent member owner p2p data " +
				"crypt store hostinfo history given obs view", tests: "*",
		},
		"internal/audit": {imports: "data grid protocol step store"},
		"internal/api": {
			imports: "grid view jobfile obs tes api/reference api/session api/socket api/web",
			tests:   "api/client api/apitest",
		},
		"internal/tes": {
			imports: "grid view durable", tests: "api api/apitest config localmesh scripttest",
		},
		"internal/api/reference": {},
		"internal/api/session":   {},
		"internal/api/web":       {},
		"internal/api/socket":    {},
		"internal/api/client":    {imports: "grid view api/socket", tests: "api api/apitest jobfile obs"},
		"internal/api/apitest":   {imports: "grid view api"},
		"internal/eval": {
			imports: "grid avail broker ckpt metrics plan plan/batch protocol scenario sim " +
				"remap sim/baseline sim/failing sim/remapping site step workload",
		},
		"internal/figures":  {imports: "eval metrics", tests: "scenario"},
		"internal/archtest": {},
		"internal/vectors":  {},

		".": {
			imports: "grid agent agent/backend config api lrm lrm/* p2p data store obs hostinfo", tests: "*",
		},
		"sdk":              {},
		"sdk/examples/sum": {imports: "sdk"},

		"sdk/mesh":                {imports: "api/client config grid view", tests: "api api/apitest"},
		"sdk/examples/countwords": {imports: "sdk/mesh"},
		"cmd/internal/manual":     {imports: "cmd/internal/manual/pages"},

		"cmd/internal/manual/pages": {},
		"cmd/siteagent": {
			imports: "durable grid avail protocol step broker yield owner agent agent/backend member " +
				"audit config api api/client hostinfo install lrm lrm/* p2p data data/intake " +
				"store obs suspend systemd tes tui view cmd/internal/manual",
			tests: "*",
		},
		"cmd/submit": {
			imports: "grid signed api/client jobfile jobmap sbatch config tui view " +
				"cmd/internal/manual",
			tests: "*",
		},
		"e2e": {tests: "*"},
		"cmd/gridsim": {
			imports: "eval figures config scenario play agent metrics cmd/internal/manual",
			tests:   "*",
		},
	}
}

// exampleRoom is the rule for every package below examples/: it may use anything
// of pkg/ and internal/, and what sdk has for programs, and nothing imports it.
func exampleRoom() room { return room{imports: allPkg(declaredRooms()) + " * . sdk"} }

// confinement keeps third-party code in its room, so that replacing a library
// means opening one door.
type confinement struct {
	prefix string // of the import path
	rooms  string // where it may be imported, rooms below included
	tests  bool   // tests outside pkg/ may import it anywhere
}

func confinements() []confinement {
	return []confinement{
		{prefix: "github.com/libp2p/go-libp2p-pubsub", rooms: "internal/p2p/gossip", tests: true},
		{prefix: "github.com/libp2p/go-libp2p-kad-dht", rooms: "internal/p2p", tests: true},
		{prefix: "github.com/libp2p/go-libp2p/p2p/protocol", rooms: "internal/p2p/relay", tests: true},
		{prefix: "github.com/libp2p", rooms: "internal/p2p internal/data", tests: true},
		{
			prefix: "github.com/multiformats/go-multiaddr", rooms: "internal/p2p internal/data", tests: true,
		},
		{prefix: "github.com/ipfs/boxo", rooms: "internal/data"},
		{prefix: "gonum.org/v1/plot", rooms: "internal/figures"},
		{prefix: "gonum.org/v1/gonum", rooms: "pkg/workload pkg/metrics"},
		{prefix: "google.golang.org/protobuf", rooms: "pkg/protocol pkg/standby"},
		{prefix: "go.etcd.io/raft", rooms: "pkg/standby"},
		{prefix: "github.com/tetratelabs/wazero", rooms: "internal/lrm/wasm"},
		{prefix: "github.com/landlock-lsm/go-landlock", rooms: "internal/lrm"},
		{prefix: "kernel.org/pub/linux/libs/security/libcap", rooms: "internal/lrm/scratch"},
		{prefix: "golang.org/x/net/bpf", rooms: "internal/lrm/native"},
		{prefix: "go.etcd.io/bbolt", rooms: "internal/store"},
		{prefix: "github.com/go-chi/chi", rooms: "internal/api internal/tes"},
		{prefix: "github.com/oapi-codegen", rooms: "internal/api internal/tes"},
		{prefix: "github.com/getkin/kin-openapi", rooms: "internal/api internal/tes"},
		{prefix: "github.com/coreos/go-systemd", rooms: "internal/systemd"},
		{prefix: "aead.dev/minisign", rooms: "pkg/signed cmd/submit", tests: true},
		{prefix: "filippo.io/age", rooms: "internal/crypt"},
		{prefix: "golang.org/x/crypto", rooms: "pkg/signed internal/crypt", tests: true},
		{prefix: "golang.org/x/mod", rooms: "pkg/signed", tests: true},
		{prefix: "github.com/spf13/cobra", rooms: "cmd"},
		{prefix: "github.com/spf13/pflag", rooms: "cmd"},
	}
}

// testLibraries are imported by tests alone, and by the rooms whose tests other packages
// run.
func testLibraries() []string {
	return []string{
		"pgregory.net/rapid", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal",
		"go.uber.org/goleak", "github.com/marcopolo/simnet", "github.com/creack/pty",
		"github.com/chromedp", "github.com/charmbracelet/x/vt",
		"github.com/moby/profiles", "github.com/elastic/go-seccomp-bpf",
		"github.com/opencontainers/runtime-spec",
	}
}

// testRooms are tests that other packages run: the conformance suite of adapters, the
// scripts of the commands, and power failures.
func testRooms() []string {
	return []string{
		"internal/lrm/lrmtest", "internal/scripttest", "internal/powercut",
		"internal/suspend/suspendtest", "internal/freeport",
	}
}

// exampleOf is the example that a package belongs to, "examples/quickstart" for
// all below it, or empty.
func exampleOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	if len(parts) < 2 || parts[0] != "examples" {
		return ""
	}
	return path.Join(parts[0], parts[1])
}

// findRoom is the table's entry for a package, examples included.
func findRoom(table map[string]room, dir string) (room, bool) {
	if within(dir, "examples") {
		return exampleRoom(), true
	}
	r, ok := table[dir]
	return r, ok
}

// allowed expands the words of a table entry into package directories.
func allowed(table map[string]room, words string) ([]string, error) {
	var dirs []string
	for word := range strings.FieldsSeq(words) {
		found := expandWord(table, word)
		if len(found) == 0 {
			return nil, fmt.Errorf("the table of rooms does not name %q", word)
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

func expandWord(table map[string]room, word string) []string {
	if parent, wild := strings.CutSuffix(word, "*"); wild {
		return roomsBelow(table, path.Join("internal", parent))
	}
	for _, dir := range []string{path.Join("pkg", word), path.Join("internal", word), word} {
		if _, ok := table[dir]; ok {
			return []string{dir}
		}
	}
	return nil
}

func allPkg(table map[string]room) string {
	var words []string
	for _, dir := range roomsBelow(table, "pkg") {
		words = append(words, strings.TrimPrefix(dir, "pkg/"))
	}
	return strings.Join(words, " ")
}

func roomsBelow(table map[string]room, parent string) []string {
	var dirs []string
	for dir := range table {
		if within(dir, parent) && dir != parent {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// within reports whether p is the parent path or lies below it.
func within(p, parent string) bool {
	return p == parent || strings.HasPrefix(p, parent+"/")
}
