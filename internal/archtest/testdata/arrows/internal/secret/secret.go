// Package secret was built without telling anybody.
package secret // want "internal/secret is not in the table of rooms"

import _ "github.com/mrsmesh/mrsmesh/pkg/grid"
