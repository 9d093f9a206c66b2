#!/usr/bin/env node
// The CNI plugin as a Node.js script, as a reference: the same request to the same socket.
const { createConnection } = require('node:net');
const { readFileSync } = require('node:fs');

const conf = readFileSync(0);
const { cniVersion, socket } = JSON.parse(conf);
const environment = Object.entries(process.env).filter(([name]) => name.startsWith('CNI_'));
const variables = Buffer.from(environment.map(([name, value]) => `${name}=${value}\0`).join(''));
const agent = createConnection(socket);
let answer = '';
agent.write(`plumbline-gate/1 ${process.env.CNI_COMMAND} chained ${variables.length} ${conf.length}\n`);
agent.write(variables);
agent.write(conf);
agent.setEncoding('utf8').on('data', (chunk) => {
  answer = (answer + chunk).replace(/^(wait\n)+/, '');
  if (!answer.includes('\n')) return;
  agent.destroy();
  const [, code, message] = /^deny (\d+) \d+\n(.*)$/s.exec(answer) ?? [];
  const refused = code !== undefined;
  process.stdout.write(JSON.stringify(refused ? { cniVersion, code: Number(code), msg: message } : { cniVersion }));
  process.exitCode = refused ? 1 : 0;
});
