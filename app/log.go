//go:build linux

package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/ui/command"
)

// logger is the engine's log as its options say; nil when there is none. What
// close returns is called when nothing is logged any more.
func logger(opt command.Log, secrets *atomic.Pointer[secret.Secrets]) (_ *slog.Logger, end func() error, err error) {
	end = func() error { return nil }
	if opt == (command.Log{}) {
		return nil, end, nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(opt.Level)); err != nil {
		return nil, nil, core.Invalid("log-level", opt.Level, "debug, info, warn, error")
	}
	var to io.Writer = os.Stderr
	if opt.File != "" {
		f, err := os.OpenFile(opt.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open the log: %w", err)
		}
		to, end = f, f.Close
	}
	handler := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		return masked(secrets.Load(), a)
	}}
	if opt.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, handler)), end, nil
	}
	return slog.New(slog.NewTextHandler(to, handler)), end, nil
}

// masked is an attribute without the values of secrets.
func masked(s *secret.Secrets, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		if a.Key == slog.LevelKey || a.Key == slog.TimeKey {
			return a
		}
		text := a.Value.String()
		if s != nil {
			text = s.Masked(text)
		}
		return slog.String(a.Key, text)
	}
	return a
}

// logOf is the engine's log, or another where the engine has none.
func logOf(log *slog.Logger, other func() *slog.Logger) *slog.Logger {
	if log.Enabled(context.Background(), slog.LevelError) {
		return log
	}
	return other()
}
