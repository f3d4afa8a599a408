package grid_test

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Amounts are integers with units in their names; people write and read them with units.
func ExampleParseBytes() {
	for _, text := range []string{"512MiB", "1.5 GB", "512"} {
		n, err := grid.ParseBytes(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(text, "is", n, "bytes")
	}
	// Output:
	// 512MiB is 536870912 bytes
	// 1.5 GB is 1500000000 bytes
	// invalid: size "512": want a number with a unit (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB), such as 512MiB
}

// A refusal says what was asked for and what there is, and whether that can change.
func ExampleRefusal() {
	site := grid.Resources{MilliCPUs: 4_000, MemoryBytes: 2 << 30}
	need := grid.Resources{MilliCPUs: 1_000, MemoryBytes: 64 << 30}
	if !site.Fits(need) {
		r := grid.Refusal{
			Reason: grid.ReasonMemory, Never: true, Want: need.MemoryBytes, Have: site.MemoryBytes,
		}
		fmt.Println(r.Reason, "- wants", r.Want>>30, "GiB, has", r.Have>>30, "GiB; never:", r.Never)
	}
	// Output: too little memory - wants 64 GiB, has 2 GiB; never: true
}

// An attempt is a task with a token; the higher token is the later attempt.
func ExampleAttemptID() {
	task := grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 3}
	first, second := grid.AttemptID{Task: task, Token: 1}, grid.AttemptID{Task: task, Token: 2}
	fmt.Println(first, "comes before", second, "-", first.Compare(second))
	// Output: mfrggzdfmztwq2lk.3#1 comes before mfrggzdfmztwq2lk.3#2 - -1
}
