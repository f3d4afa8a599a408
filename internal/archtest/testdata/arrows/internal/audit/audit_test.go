package audit

import _ "github.com/mrsmesh/mrsmesh/pkg/sim"
