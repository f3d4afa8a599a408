package cache

import "time"

// expire drops every entry whose time has ended and returns how many. The other
// methods never show such an entry, so this only gives memory back; it looks at
// all entries.
func (c *Cache[V]) expire(now time.Time) int {
	before := len(c.entries)
	c.Entries(now)
	return before - len(c.entries)
}
