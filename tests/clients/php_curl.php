<?php
// SPDX-License-Identifier: BSD-2-Clause
// PHP's curl extension on one handle, and so one connection: php_curl.php URL ROUNDS plain|expect
// "expect": the body waits for "100 Continue", as older versions of curl do by themselves from 1 KB on.

[, $url, $rounds, $mode] = $argv;
$name = "php-curl-$mode";
$curl = curl_init();

/* Numbered lines that say whose they are, cut to size bytes. */
function value(int $size, int $round): string
{
    global $name;
    $text = '';
    for ($line = 0; strlen($text) < $size; $line++) {
        $text .= "$name $size $round $line\n";
    }
    return substr($text, 0, $size);
}

function request(string $method, int $size, ?string $body = null): array
{
    global $curl, $url, $name, $mode;
    $start = hrtime(true);
    curl_reset($curl); /* the options; the connection stays */
    curl_setopt_array($curl, [
        CURLOPT_URL => "$url$name-$size",
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 10,
    ]);
    if ($body !== null) {
        curl_setopt_array($curl, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => [$mode === 'expect' ? 'Expect: 100-continue' : 'Expect:'],
        ]);
    }
    $content = curl_exec($curl);
    $us = intdiv(hrtime(true) - $start, 1000);
    return [curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $content, $us];
}

function fail(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(1);
}

for ($round = 0; $round <= $rounds; $round++) { /* round 0 is for warming up */
    foreach ([307200, 100] as $size) {
        $body = value($size, $round);
        [$status, , $put_us] = request('PUT', $size, $body);
        in_array($status, [201, 204]) or fail("round $round: put answered $status");
        [$status, $content, $get_us] = request('GET', $size);
        $status === 200 && $content === $body or fail("round $round: get answered $status, or another value");
        if ($round > 0) {
            echo "put $size $put_us\nget $size $get_us\n";
        }
    }
}
