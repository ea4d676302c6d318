// SPDX-License-Identifier: BSD-2-Clause
// Node's fetch (undici inside), from version 18 on: node_fetch.js URL ROUNDS
'use strict';

const [url, rounds] = [process.argv[2], Number(process.argv[3])];

/* Numbered lines that say whose they are, cut to size bytes. */
function value(size, round) {
    let text = '';
    for (let line = 0; text.length < size; line++) {
        text += `node-fetch ${size} ${round} ${line}\n`;
    }
    return Buffer.from(text.slice(0, size));
}

async function request(method, size, body) {
    const start = process.hrtime.bigint();
    const response = await fetch(`${url}node-fetch-${size}`, { method, body, signal: AbortSignal.timeout(10000) });
    const content = Buffer.from(await response.arrayBuffer());
    const us = (process.hrtime.bigint() - start) / 1000n;
    return { status: response.status, content, us };
}

async function main() {
    for (let round = 0; round <= rounds; round++) { /* round 0 is for warming up */
        for (const size of [307200, 100]) {
            const body = value(size, round);
            const put = await request('PUT', size, body);
            if (put.status !== 201 && put.status !== 204) {
                throw new Error(`round ${round}: put answered ${put.status}`);
            }
            const get = await request('GET', size);
            if (get.status !== 200 || !get.content.equals(body)) {
                throw new Error(`round ${round}: get answered ${get.status}, ${get.content.length} bytes`);
            }
            if (round > 0) {
                console.log(`put ${size} ${put.us}\nget ${size} ${get.us}`);
            }
        }
    }
}

main().then(() => process.exit(0), (error) => {
    console.error(error.message);
    process.exit(1);
});
