<?php
// SPDX-License-Identifier: BSD-2-Clause
// PHP's http:// streams (file_get_contents): php_streams.php URL ROUNDS
// They open a connection for each request.

[, $url, $rounds] = $argv;

/* Numbered lines that say whose they are, cut to size bytes. */
function value(int $size, int $round): string
{
    $text = '';
    for ($line = 0; strlen($text) < $size; $line++) {
        $text .= "php-streams $size $round $line\n";
    }
    return substr($text, 0, $size);
}

function request(string $method, int $size, ?string $body = null): array
{
    global $url;
    $options = ['method' => $method, 'timeout' => 10, 'ignore_errors' => true, 'protocol_version' => 1.1];
    if ($body !== null) {
        $options['header'] = 'Content-Type: application/octet-stream';
        $options['content'] = $body;
    }
    $start = hrtime(true);
    $content = file_get_contents("{$url}php-streams-$size", false, stream_context_create(['http' => $options]));
    $us = intdiv(hrtime(true) - $start, 1000);
    return [(int) explode(' ', $http_response_header[0] ?? 'none 0')[1], $content, $us];
}

function fail(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(1);
}

for ($round = 0; $round <= $rounds; $round++) { /* round 0 is for warming up */
    foreach ([307200, 100] as $size) {
        $body = value($size, $round);
        [$status, , $post_us] = request('POST', $size, $body);
        in_array($status, [201, 204]) or fail("round $round: post answered $status");
        [$status, $content, $get_us] = request('GET', $size);
        $status === 200 && $content === $body or fail("round $round: get answered $status, or another value");
        if ($round > 0) {
            echo "post $size $post_us\nget $size $get_us\n";
        }
    }
}
