// Package imports takes what touches the world.
package imports

import (
	_ "context"      // want "context"
	_ "crypto/rand"  // want "crypto/rand"
	_ "encoding/hex" // pure
	_ "hash/maphash" // want "hash/maphash"
	_ "io/ioutil"    // want "io/ioutil"
	_ "log"          // want "machines report by effects"
	_ "log/slog"     // want "machines report by effects"
	_ "net"          // want "network"
	_ "net/netip"    // want "network"
	_ "os"           // want "import os"
	_ "os/exec"      // want "import os/exec"
	_ "runtime"      // want "runtime"
	_ "sync"         // want "lock"
	_ "sync/atomic"  // want "lock"
	_ "unsafe"       // want "unsafe"
)
