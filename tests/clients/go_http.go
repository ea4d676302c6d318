// SPDX-License-Identifier: BSD-2-Clause

// Go's net/http with its default transport, which keeps the connection: go_http URL ROUNDS
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

var client = http.Client{Timeout: 10 * time.Second}

// value is numbered lines that say whose they are, cut to size bytes.
func value(size, round int) []byte {
	var text bytes.Buffer
	for line := 0; text.Len() < size; line++ {
		fmt.Fprintf(&text, "go-http %d %d %d\n", size, round, line)
	}
	return text.Bytes()[:size]
}

// request returns the status, the content and the time it took. A nil body is no body.
func request(method, url string, body []byte) (int, []byte, time.Duration) {
	start := time.Now()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	asked, err := http.NewRequest(method, url, reader)
	if err != nil {
		fail("%s: %v", method, err)
	}
	response, err := client.Do(asked)
	if err != nil {
		fail("%s: %v", method, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		fail("%s: %v", method, err)
	}
	return response.StatusCode, content, time.Since(start)
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func main() {
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail("rounds: %v", err)
	}
	for round := 0; round <= rounds; round++ { // round 0 is for warming up
		for _, size := range []int{307200, 100} {
			url := fmt.Sprintf("%sgo-http-%d", os.Args[1], size)
			body := value(size, round)
			status, _, put := request("PUT", url, body)
			if status != 201 && status != 204 {
				fail("round %d: put answered %d", round, status)
			}
			status, content, get := request("GET", url, nil)
			if status != 200 || !bytes.Equal(content, body) {
				fail("round %d: get answered %d, %d bytes", round, status, len(content))
			}
			if round > 0 {
				fmt.Printf("put %d %d\nget %d %d\n", size, put.Microseconds(), size, get.Microseconds())
			}
		}
	}
}
