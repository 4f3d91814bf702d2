package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/engine/egress"
)

// Numbers of SOCKS5 (RFC 1928).
const (
	socksVersion  = 5
	socksNoAuth   = 0
	socksNoMethod = 0xff
	socksConnect  = 1
	socksIPv4     = 1
	socksName     = 3
	socksIPv6     = 4

	socksDone        = 0
	socksFailed      = 1
	socksRefused     = 2 // by the rules
	socksUnreachable = 4
	socksNoCommand   = 7
	socksNoAddress   = 8
)

// socks carries one SOCKS5 connection.
func (p *Proxy) socks(ctx context.Context, conn net.Conn, from Origin, authority *ca.Authority) {
	_ = conn.SetDeadline(time.Now().Add(handshake))
	to, code, err := readSocks(conn)
	if err != nil {
		if code != 0 {
			socksReply(conn, code)
		}
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if authority != nil && !p.decider().Opaque(from, to) {
		if socksReply(conn, socksDone) {
			p.inspect(ctx, from, authority, to, conn, nil)
		}
		return
	}
	server, status, _ := p.open(ctx, from, to)
	if server == nil {
		code = socksUnreachable
		if status == http.StatusForbidden {
			code = socksRefused
		}
		socksReply(conn, code)
		return
	}
	defer server.Close()
	if socksReply(conn, socksDone) {
		p.tunnel(ctx, from, to, conn, server, nil)
	}
}

// readSocks reads a greeting and a request. With an error, code is what the
// client is told, 0 for nothing.
func readSocks(conn io.ReadWriter) (to egress.Target, code byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:2]); err != nil {
		return to, 0, err
	}
	if head[0] != socksVersion {
		return to, 0, errors.New("not SOCKS version 5")
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(conn, methods); err != nil {
		return to, 0, err
	}
	method := byte(socksNoMethod)
	if slices.Contains(methods, socksNoAuth) {
		method = socksNoAuth
	}
	if _, err := conn.Write([]byte{socksVersion, method}); err != nil {
		return to, 0, err
	}
	if method != socksNoAuth {
		return to, 0, errors.New("no method of authentication that is known")
	}
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return to, 0, err
	}
	host, code, err := readSocksHost(conn, head[3])
	if err != nil {
		return to, code, err
	}
	var port [2]byte
	if _, err := io.ReadFull(conn, port[:]); err != nil {
		return to, 0, err
	}
	switch {
	case head[0] != socksVersion:
		return to, socksFailed, errors.New("not SOCKS version 5")
	case head[1] != socksConnect:
		return to, socksNoCommand, errors.New("only CONNECT is carried out")
	}
	if to, err = egress.NewTarget(host, int(port[0])<<8|int(port[1])); err != nil {
		return to, socksRefused, err
	}
	return to, 0, nil
}

func readSocksHost(conn io.Reader, kind byte) (host string, code byte, err error) {
	size := 4
	switch kind {
	case socksIPv4:
	case socksIPv6:
		size = 16
	case socksName:
		var n [1]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			return "", 0, err
		}
		size = int(n[0])
	default:
		return "", socksNoAddress, errors.New("an unknown kind of address")
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(conn, data); err != nil {
		return "", 0, err
	}
	if kind == socksName {
		return string(data), 0, nil
	}
	addr, _ := netip.AddrFromSlice(data)
	return addr.String(), 0, nil
}

// socksReply answers a request; false when the client has gone.
func socksReply(conn io.Writer, code byte) bool {
	_, err := conn.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err == nil
}
