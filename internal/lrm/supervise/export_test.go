package supervise

import "time"

// SetPatience makes the pool less patient with supervisors that do not stop.
func SetPatience(pool *Pool, d time.Duration) { pool.patience = d }

// SetIdleTime lets supervisors wait for their next attempt for so long.
func SetIdleTime(pool *Pool, d time.Duration) { pool.idleTime = d }
