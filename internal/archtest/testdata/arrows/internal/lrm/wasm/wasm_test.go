package wasm

import _ "github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
