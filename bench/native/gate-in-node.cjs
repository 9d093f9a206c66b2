#!/usr/bin/env node
// The CNI plugin as a Node.js script, as a reference: the same request to the same socket, and the same delegate.
const { spawnSync } = require('node:child_process');
const { createConnection } = require('node:net');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const conf = readFileSync(0);
const { cniVersion, name, delegate } = JSON.parse(conf);
const environment = Object.entries(process.env).filter(([name]) => name.startsWith('CNI_'));
const variables = Buffer.from(environment.map(([name, value]) => `${name}=${value}\0`).join(''));
const agent = createConnection(join(process.env.PLUMBLINE_RUN_DIR, 'gate.sock'));
let answer = '';
agent.write(`plumbline-gate/1 ${process.env.CNI_COMMAND} ${variables.length} ${conf.length}\n`);
agent.write(variables);
agent.write(conf);
agent.setEncoding('utf8').on('data', (chunk) => {
  answer = (answer + chunk).replace(/^(wait\n)+/, '');
  if (!answer.includes('\n')) return;
  agent.destroy();
  const [, code, message] = /^deny (\d+) \d+\n(.*)$/s.exec(answer) ?? [];
  const refused = code !== undefined;
  if (refused) {
    process.stdout.write(JSON.stringify({ cniVersion, code: Number(code), msg: message }));
    process.exitCode = 1;
    return;
  }
  const input = JSON.stringify({ cniVersion, name, ...delegate });
  const { stdout, status } = spawnSync(join(process.env.CNI_PATH, delegate.type), { input });
  process.stdout.write(stdout);
  process.exitCode = status;
});
