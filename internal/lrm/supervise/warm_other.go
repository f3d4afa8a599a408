//go:build !linux

package supervise

// warm is none: sandboxes are not started from here.
type warm struct{ meter meter }

func (*warm) fits(Spec) bool { return false }

func (*warm) died() <-chan struct{} { return nil }

func (*warm) end() {}

func (*warm) destroy() {}

func (r *runner) startWarm(*warm) error { return ErrUnsupported }

func (r *runner) attend() {}
