// SPDX-License-Identifier: BSD-2-Clause
// Java's HttpURLConnection, which keeps the connection: java java_url_connection.java URL ROUNDS

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

class UrlConnection {
    record Answer(int status, byte[] content, long us) {}

    /* Numbered lines that say whose they are, cut to size bytes. */
    static byte[] value(int size, int round) {
        StringBuilder text = new StringBuilder();
        for (int line = 0; text.length() < size; line++) {
            text.append("java-url-connection " + size + " " + round + " " + line + "\n");
        }
        return text.substring(0, size).getBytes(StandardCharsets.US_ASCII);
    }

    /* A status of 400 and more is an exception. */
    static Answer request(String method, String url, byte[] body) throws IOException {
        long start = System.nanoTime();
        HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
        connection.setRequestMethod(method);
        connection.setConnectTimeout(10_000);
        connection.setReadTimeout(10_000);
        if (body != null) {
            connection.setDoOutput(true);
            connection.setFixedLengthStreamingMode(body.length);
            try (OutputStream out = connection.getOutputStream()) {
                out.write(body);
            }
        }
        byte[] content;
        try (InputStream in = connection.getInputStream()) {
            content = in.readAllBytes();
        }
        return new Answer(connection.getResponseCode(), content, (System.nanoTime() - start) / 1000);
    }

    static void fail(String why) {
        System.err.println(why);
        System.exit(1);
    }

    public static void main(String[] arguments) throws IOException {
        int rounds = Integer.parseInt(arguments[1]);
        for (int round = 0; round <= rounds; round++) { /* round 0 is for warming up */
            for (int size : new int[] {307200, 100}) {
                String url = arguments[0] + "java-url-connection-" + size;
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
