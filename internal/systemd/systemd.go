// Package systemd tells the service manager how the agent is, by the protocol of sd_notify: that it
// is up, reads its configuration again, stops, and, for the watchdog, that it is alive. It decides
// nothing about the agent. Without a service manager that asked to be told it does nothing.
package systemd

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// answerWithin bounds the wait for the first answer where no watchdog is set. The service manager
// has a limit of its own for the start.
const answerWithin = 10 * time.Minute

// asksInTime counts the questions to the agent within the time that the watchdog allows.
const asksInTime = 3

// tellWithin bounds the time for which the service manager may not listen.
const tellWithin = time.Second

// askAgain is the pause after a question that failed, where no watchdog is set.
const askAgain = time.Second

// Live tells the service manager that the agent is up as soon as alive returns nil for the first
// time, for the watchdog each time that it does so again, and that the agent stops when ctx ends;
// then it returns. alive returns nil when the agent's own loops have answered, and an error when
// they have not before its context ended: then the watchdog is told nothing, and ends the agent
// when its time is up.
func Live(ctx context.Context, alive func(context.Context) error, log *slog.Logger) {
	allowed, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Error("the watchdog's variables cannot be read; it is told nothing", "error", err)
	}
	every := allowed / asksInTime
	state := daemon.SdNotifyReady
	for ctx.Err() == nil {
		switch err := ask(ctx, every, alive); {
		case err == nil:
			tell(state, log)
			state = daemon.SdNotifyWatchdog
		case ctx.Err() == nil:
			log.Error("the agent's own loops do not answer; the watchdog is not told",
				"allowed", allowed, "error", err)
		}
		wait(ctx, every, state)
	}
	tell(daemon.SdNotifyStopping, log)
}

// ask asks the agent, for as long as the next question is away.
func ask(ctx context.Context, every time.Duration, alive func(context.Context) error) error {
	if every == 0 {
		every = answerWithin
	}
	ctx, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	return alive(ctx)
}

// wait waits until the next question, or until ctx ends if there is none.
func wait(ctx context.Context, every time.Duration, state string) {
	if every == 0 && state == daemon.SdNotifyWatchdog { // it is up, and nobody wants to hear more
		<-ctx.Done()
		return
	}
	if every == 0 {
		every = askAgain
	}
	next := time.NewTimer(every)
	defer next.Stop()
	select {
	case <-next.C:
	case <-ctx.Done():
	}
}

// Reloading tells the service manager that the configuration is being read again, and, when the
// function that it returns is called, that this is over.
func Reloading(log *slog.Logger) (over func()) {
	tell(daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec(), log)
	return func() { tell(daemon.SdNotifyReady, log) }
}

func tell(state string, log *slog.Logger) {
	if err := send(os.Getenv("NOTIFY_SOCKET"), state); err != nil {
		log.Warn("the service manager could not be told", "state", state, "error", err)
	}
}

// send is daemon.SdNotify with a limit: a service manager that hangs must not keep the agent from
// stopping.
func send(socket, state string) error {
	if socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err = conn.SetWriteDeadline(time.Now().Add(tellWithin)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}
