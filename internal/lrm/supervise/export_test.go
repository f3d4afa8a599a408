package supervise

import "time"

// SetPatience makes the pool less patient with supervisors that do not stop.
func SetPatience(pool *Pool, d time.Duration) { pool.patience = d }
