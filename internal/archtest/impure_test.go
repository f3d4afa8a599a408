package archtest

import (
	"go/types"
	"strings"
)

// What pkg/ may not touch. The tables name what is wrong rather than what is
// right, because the standard library is mostly pure.

// impureImport is why a package may not be imported in pkg/, or empty.
func impureImport(imported string) string {
	prefixes := [...]struct{ path, why string }{
		{"os", "it touches the machine"},
		{"net", "it touches the network"},
		{"log", "machines report by effects"},
		{"context", "nothing there waits or is cancelled"},
		{"sync", "one owner holds each state, so nothing needs a lock"},
		{"syscall", "it touches the machine"},
		{"golang.org/x/sys", "it touches the machine"},
		{"runtime", "it depends on the machine"},
		{"plugin", "it touches the machine"},
		{"expvar", "machines report by effects"},
		{"database", "it touches the machine"},
		{"testing", "it belongs into tests"},
		{"crypto/rand", "randomness comes from a seed"},
		{"hash/maphash", "its seed is random"},
		{"io/ioutil", "it touches the machine"},
		{"path/filepath", "it depends on the machine; use path"},
		{"unsafe", "values are copied, not looked into"},
		{"unique", "it shares state"},
		{"weak", "it depends on the garbage collector"},
		{"C", "it touches the machine"},
	}
	for _, p := range prefixes {
		if within(imported, p.path) {
			return p.why
		}
	}
	return ""
}

// impureObject is the full name of a standard library function or variable and
// why pkg/ may not use it, or empty.
func impureObject(object types.Object) (name, why string) {
	switch object := object.(type) {
	case *types.Func:
		name = object.FullName()
	case *types.Var:
		name = object.Pkg().Path() + "." + object.Name()
	default:
		return "", ""
	}
	dir, base, _ := cutLast(name, ".")
	switch dir {
	case "math/rand", "math/rand/v2":
		return name, impureRandom(base)
	case "time":
		return name, impureTime(base)
	case "fmt":
		return name, impureFmt(base)
	}
	switch name {
	case "(time.Time).Local":
		return name, "the machine's time zone is not an argument; keep UTC"
	case "(reflect.Value).MapRange", "(reflect.Value).MapKeys", "(reflect.Value).Seq",
		"(reflect.Value).Seq2":
		return name, "the order of a map is random"
	case "crypto/ed25519.GenerateKey", "crypto/ecdsa.GenerateKey", "crypto/rsa.GenerateKey":
		return name, "randomness comes from a source seeded for its owner"
	case "iter.Pull", "iter.Pull2":
		return name, "it starts a coroutine"
	}
	return "", ""
}

// impureRandom lets the constructors of seeded sources pass; everything else at
// the top level draws from a source that all share.
func impureRandom(base string) string {
	switch base {
	case "New", "NewPCG", "NewChaCha8", "NewZipf", "NewSource":
		return ""
	}
	return "randomness comes from a source seeded for its owner"
}

func impureTime(base string) string {
	switch base {
	case "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker":
		return "time is an argument"
	case "Local", "LoadLocation":
		return "the machine's time zone is not an argument; keep UTC"
	}
	return ""
}

func impureFmt(base string) string {
	if strings.HasPrefix(base, "Print") || strings.HasPrefix(base, "Scan") {
		return "pkg/ reads and prints nothing"
	}
	return ""
}

func mapWalks() []string { return []string{"maps.Keys", "maps.Values", "maps.All"} }

func sorters() []string {
	return []string{"slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc"}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
