// Package eval runs experiments with the project's own machines and says what came of
// them. It reads what they need, gives them their time, and writes what they leave;
// how anything is scheduled or measured it leaves to pkg/.
package eval
