package main

import (
	"fmt"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"
)

var portOf = regexp.MustCompile(`tcp_port:(\d+)`)

// checkSentinel finds the leader of a group by its nodes at these ports. When the leader is to be
// killed, it prints "kill", and waits for a line.
func checkSentinel(ports []string) {
	var addresses []string
	for _, port := range ports {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	options := redis.FailoverOptions{MasterName: "main", SentinelAddrs: addresses}
	master := redis.NewFailoverClient(&options)
	defer master.Close()
	done(master.Set(ctx, "key", "before", 0).Err())
	first := portOf.FindStringSubmatch(must(master.Info(ctx, "server").Result()))[1]

	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addresses[0]})
	defer sentinel.Close()
	done(sentinel.CkQuorum(ctx, "main").Err())
	replicas := must(sentinel.Replicas(ctx, "main").Result())
	expect(len(replicas) == 2, replicas)
	address := must(sentinel.GetMasterAddrByName(ctx, "main").Result())
	expect(len(address) == 2 && address[1] == first, address)

	onReplica := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: addresses, ReplicaOnly: true,
	})
	defer onReplica.Close()
	role := must(onReplica.Do(ctx, "ROLE").Slice())
	expect(role[0] == "slave", role)

	fmt.Println("kill")
	must(input.ReadString('\n'))
	deadline := time.Now().Add(time.Minute)
	for master.Set(ctx, "key", "behind", 0).Err() != nil {
		expect(time.Now().Before(deadline), "no other leader is found")
		time.Sleep(50 * time.Millisecond)
	}
	second := portOf.FindStringSubmatch(must(master.Info(ctx, "server").Result()))[1]
	expect(second != first, second)
	expect(must(master.Get(ctx, "key").Result()) == "behind", "the key")
	fmt.Println("passed")
}
