// The client go-redis against a Tremula server: go run . PORT [TLS_PORT CERTIFICATE].
//
// Ends with status 0 and the word "passed" if everything is as it should be. Where the server has to
// be started again, it prints "restart", and waits for a line.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Commands of a large pipeline, of each kind.
const pipelined = 10_000

var (
	ctx   = context.Background()
	input = bufio.NewReader(os.Stdin)
)

// connect makes a client that is patient: the machine may be busy.
func connect(options *redis.Options) *redis.Client {
	options.DialTimeout, options.ReadTimeout = time.Minute, time.Minute
	return redis.NewClient(options)
}

func main() {
	log.SetFlags(log.Lshortfile)
	if os.Args[1] == "sentinel" {
		checkSentinel(os.Args[2:])
		return
	}
	address := "127.0.0.1:" + os.Args[1]
	for _, protocol := range []int{2, 3} {
		admin := connect(&redis.Options{Addr: address, Protocol: protocol})
		done(admin.FlushAll(ctx).Err())
		checkUsers(admin, address)
		checkPipelines(admin)
		page := must(admin.Do(ctx, "RANGE", "[key:10", "(key:1000", "LIMIT", 1).StringSlice())
		expect(len(page) == 1 && page[0] == "key:10", page)
		checkReconnects(admin, address)
		done(admin.Close())
	}
	if len(os.Args) > 2 {
		checkTLS("127.0.0.1:"+os.Args[2], os.Args[3])
	}
	fmt.Println("passed")
}

func checkUsers(admin *redis.Client, address string) {
	rules := []any{"ACL", "SETUSER", "app", "reset", "on", ">secret", "~app:*", "+@all", "-@dangerous"}
	done(admin.Do(ctx, rules...).Err())
	app := connect(&redis.Options{Addr: address, Username: "app", Password: "secret"})
	defer app.Close()
	done(app.Set(ctx, "app:1", "mine", 0).Err())
	expect(must(app.Get(ctx, "app:1").Result()) == "mine", "app:1")
	expect(must(app.Do(ctx, "ACL", "WHOAMI").Text()) == "app", "whoami")
	refused(app.Get(ctx, "other").Err(), "NOPERM")
	refused(app.FlushAll(ctx).Err(), "NOPERM")

	wrong := connect(&redis.Options{Addr: address, Username: "app", Password: "wrong"})
	defer wrong.Close()
	refused(wrong.Get(ctx, "app:1").Err(), "WRONGPASS")
}

func checkPipelines(client *redis.Client) {
	replies := must(client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for index := range pipelined {
			key := "key:" + strconv.Itoa(index)
			pipe.Set(ctx, key, index, 0)
			pipe.Incr(ctx, "total")
			pipe.Get(ctx, key)
		}
		return nil
	}))
	expect(len(replies) == 3*pipelined, len(replies))
	for position, reply := range replies {
		index := position / 3
		switch reply := reply.(type) {
		case *redis.StatusCmd:
			expect(reply.Val() == "OK", reply)
		case *redis.IntCmd:
			expect(reply.Val() == int64(index+1), reply)
		case *redis.StringCmd:
			expect(reply.Val() == strconv.Itoa(index), reply)
		}
	}

	// A command that fails does not disturb its neighbours.
	pipe := client.Pipeline()
	set, incr, get := pipe.Set(ctx, "n", "x", 0), pipe.Incr(ctx, "n"), pipe.Get(ctx, "n")
	_, err := pipe.Exec(ctx)
	refused(err, "ERR value is not an integer")
	refused(incr.Err(), "ERR value is not an integer")
	expect(set.Val() == "OK" && get.Val() == "x", get)

	// The pool gives each goroutine a connection of its own.
	sums := make(chan error)
	for range 8 {
		go func() {
			for range 300 {
				if err := client.Incr(ctx, "sum").Err(); err != nil {
					sums <- err
					return
				}
			}
			sums <- nil
		}()
	}
	for range 8 {
		done(<-sums)
	}
	expect(must(client.Get(ctx, "sum").Int()) == 8*300, "the sum of all goroutines")
}

func checkReconnects(admin *redis.Client, address string) {
	options := redis.Options{Addr: address, Username: "app", Password: "secret", PoolSize: 1}
	client := connect(&options)
	defer client.Close()
	before := must(client.ClientID(ctx).Result())
	expect(must(admin.ClientKillByFilter(ctx, "ID", strconv.FormatInt(before, 10)).Result()) == 1, before)
	done(client.Set(ctx, "app:2", "again", 0).Err())
	expect(must(client.ClientID(ctx).Result()) > before, "it is a new connection")
	expect(must(client.Do(ctx, "ACL", "WHOAMI").Text()) == "app", "it has proved again who it is")

	patient := connect(&redis.Options{Addr: address})
	defer patient.Close()
	done(patient.Set(ctx, "gone", "with the process", 0).Err())
	fmt.Println("restart")
	must(input.ReadString('\n'))
	refusedNil(patient.Get(ctx, "gone").Err())
}

func checkTLS(address, certificate string) {
	roots := x509.NewCertPool()
	expect(roots.AppendCertsFromPEM(must(os.ReadFile(certificate))), certificate)
	config := tls.Config{RootCAs: roots, ServerName: "localhost"}
	client := connect(&redis.Options{Addr: address, TLSConfig: &config})
	defer client.Close()
	done(client.FlushAll(ctx).Err())
	checkPipelines(client)

	suspicious := connect(&redis.Options{
		Addr:       address,
		TLSConfig:  &tls.Config{ServerName: "localhost"},
		MaxRetries: -1,
	})
	defer suspicious.Close()
	refused(suspicious.Ping(ctx).Err(), "certificate")
}

func must[T any](value T, err error) T {
	done(err)
	return value
}

func done(err error) {
	if err != nil {
		_ = log.Output(3, err.Error())
		os.Exit(1)
	}
}

func expect(holds bool, what any) {
	if !holds {
		_ = log.Output(2, fmt.Sprint("wrong: ", what))
		os.Exit(1)
	}
}

func refused(err error, why string) {
	if err == nil || !strings.Contains(err.Error(), why) {
		_ = log.Output(2, fmt.Sprintf("%v, where %q is due", err, why))
		os.Exit(1)
	}
}

func refusedNil(err error) {
	if err != redis.Nil {
		_ = log.Output(2, fmt.Sprintf("%v, where nothing is due", err))
		os.Exit(1)
	}
}
