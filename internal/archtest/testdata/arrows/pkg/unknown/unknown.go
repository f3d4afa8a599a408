// Package unknown was built without telling anybody.
package unknown // want "pkg/unknown is not in the table of rooms"
