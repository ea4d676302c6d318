// SPDX-License-Identifier: BSD-2-Clause
// Node's http module on one connection: node_http.js URL ROUNDS
// write() and end() apart: with a Content-Length, header and body leave in separate writes.
'use strict';
const http = require('node:http');

const [url, rounds] = [process.argv[2], Number(process.argv[3])];
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

/* Numbered lines that say whose they are, cut to size bytes. */
function value(size, round) {
    let text = '';
    for (let line = 0; text.length < size; line++) {
        text += `node-http ${size} ${round} ${line}\n`;
    }
    return Buffer.from(text.slice(0, size));
}

function request(method, size, body) {
    return new Promise((resolve, reject) => {
        const start = process.hrtime.bigint();
        const headers = body ? { 'Content-Length': body.length } : {};
        const options = { method, agent, headers, timeout: 10000 };
        const asked = http.request(`${url}node-http-${size}`, options, (response) => {
            const pieces = [];
            response.on('data', (piece) => pieces.push(piece));
            response.on('error', reject);
            response.on('end', () => {
                const us = (process.hrtime.bigint() - start) / 1000n;
                resolve({ status: response.statusCode, content: Buffer.concat(pieces), us });
            });
        });
        asked.on('error', reject);
        asked.on('timeout', () => asked.destroy(new Error('timed out')));
        if (body) {
            asked.flushHeaders();
            asked.write(body);
        }
        asked.end();
    });
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
    agent.destroy();
}

main().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
    agent.destroy();
});
