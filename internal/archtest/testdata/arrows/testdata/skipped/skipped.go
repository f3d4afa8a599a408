package skipped

import _ "github.com/mrsmesh/mrsmesh/cmd/submit"
