package imports

import (
	_ "os" // tests may
	_ "sync"
)
