// SPDX-License-Identifier: BSD-2-Clause
// Java's java.net.http as it comes, which offers an upgrade to HTTP/2: java java_http_client.java URL ROUNDS

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;

class JavaHttpClient {
    record Answer(int status, byte[] content, long us) {}

    static final HttpClient client = HttpClient.newHttpClient();

    /* Numbered lines that say whose they are, cut to size bytes. */
    static byte[] value(int size, int round) {
        StringBuilder text = new StringBuilder();
        for (int line = 0; text.length() < size; line++) {
            text.append("java-http-client " + size + " " + round + " " + line + "\n");
        }
        return text.substring(0, size).getBytes(StandardCharsets.US_ASCII);
    }

    static Answer request(String method, String url, byte[] body) throws Exception {
        long start = System.nanoTime();
        HttpRequest asked = HttpRequest.newBuilder(URI.create(url))
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(body))
                .timeout(Duration.ofSeconds(10))
                .build();
        HttpResponse<byte[]> response = client.send(asked, BodyHandlers.ofByteArray());
        return new Answer(response.statusCode(), response.body(), (System.nanoTime() - start) / 1000);
    }

    static void fail(String why) {
        System.err.println(why);
        System.exit(1);
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[1]);
        for (int round = 0; round <= rounds; round++) { /* round 0 is for warming up */
            for (int size : new int[] {307200, 100}) {
                String url = arguments[0] + "java-http-client-" + size;
                byte[] body = value(size, round);
                Answer put = request("PUT", url, body);
                if (put.status() != 201 && put.status() != 204) {
                    fail("round " + round + ": put answered " + put.status());
                }
                Answer get = request("GET", url, null);
                if (get.status() != 200 || !Arrays.equals(get.content(), body)) {
                    fail("round " + round + ": get answered " + get.status() + ", " + get.content().length + " bytes");
                }
                if (round > 0) {
                    System.out.println("put " + size + " " + put.us() + "\nget " + size + " " + get.us());
                }
            }
        }
    }
}
