// Command sum adds the numbers from 1 to its argument and prints the sum. It saves its state when
// the site wants one, and goes on from there when it is started again, here or on another machine.
// It runs as a command, and with GOOS=wasip1 GOARCH=wasm as a module.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/mrsmesh/mrsmesh/sdk"
)

// lookEach counts the numbers that are added before the next look, at a file.
const lookEach = 100_000

func main() {
	last, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	i, sum := 0, 0
	state, err := sdk.Load()
	if err != nil {
		log.Fatal(err)
	}
	if state != nil {
		if _, err := fmt.Sscan(string(state), &i, &sum); err != nil {
			log.Fatal(err)
		}
	}
	for i < last {
		i++
		sum += i
		if i%lookEach == 0 && sdk.Wanted() {
			if err := sdk.Save(fmt.Appendln(nil, i, sum), 100*i/last); err != nil {
				log.Print(err) // it goes on; the site keeps the state before
			}
		}
	}
	fmt.Println(sum)
}
