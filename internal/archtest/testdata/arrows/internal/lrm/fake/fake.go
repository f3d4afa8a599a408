// Package fake wants a sandbox.
package fake

import _ "github.com/tetratelabs/wazero" // want "confined to internal/lrm/wasm"
