package sdk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/mrsmesh/mrsmesh/sdk"
)

// A sum that goes on where an earlier attempt of the task was.
func Example() {
	state, err := sdk.Load()
	if err != nil {
		fmt.Println(err)
		return
	}
	i, sum := 0, 0
	if state != nil {
		_, _ = fmt.Sscan(string(state), &i, &sum)
	}
	for ; i < 1000; i++ {
		if sdk.Wanted() {
			if err := sdk.Save(fmt.Appendf(nil, "%d %d", i, sum), i/10); err != nil {
				fmt.Println(err)
			}
		}
		sum += i
	}
	fmt.Println(sum)
	// Output: 499500
}

func TestStates(t *testing.T) {
	t.Setenv("MRS_CKPT_DIR", "")
	state, err := sdk.Load()
	if state != nil || err != nil || sdk.Wanted() || sdk.Save(nil, 0) != nil {
		t.Errorf("outside of the mesh: %q, %v", state, err)
	}
	dir := t.TempDir()
	t.Setenv("MRS_CKPT_DIR", dir)
	if state, err := sdk.Load(); state != nil || err != nil || sdk.Wanted() {
		t.Errorf("at the beginning: %q, %v", state, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "wanted"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !sdk.Wanted() {
		t.Error("it is not wanted")
	}
	for i := range 2 {
		text := strconv.Itoa(i)
		if err := sdk.Save([]byte(text), 41+i); err != nil {
			t.Fatal(err)
		}
		if state, err := sdk.Load(); string(state) != text || err != nil {
			t.Errorf("loads %q, %v, want %q", state, err, text)
		}
		percent, err := os.ReadFile(filepath.Join(dir, "percent"))
		if want := strconv.Itoa(41+i) + "\n"; string(percent) != want || err != nil {
			t.Errorf("percent %q, %v", percent, err)
		}
	}
	for _, percent := range []int{-1, 101} {
		if sdk.Save(nil, percent) == nil {
			t.Errorf("%d %% is taken", percent)
		}
	}
	t.Setenv("MRS_CKPT_DIR", filepath.Join(dir, "gone"))
	if sdk.Save([]byte("x"), 0) == nil || sdk.Save([]byte("x"), 1) == nil {
		t.Error("a directory that is not there takes a state")
	}
	t.Setenv("MRS_CKPT_DIR", filepath.Join(dir, "percent")) // which is a file
	if _, err := sdk.Load(); err == nil {
		t.Error("a state that cannot be read is loaded")
	}
}
