import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import type { Command } from 'commander';

export async function runCommand(command: Command, words: readonly string[]) {
  const { exitCode } = process;
  let stdout = '';
  const write = mock.method(process.stdout, 'write', (text: string) => {
    stdout += text;
    return true;
  });
  try {
    await command.parseAsync(words, { from: 'user' });
    return { stdout, lines: stdout.replace(/\n$/, '').split('\n'), status: process.exitCode };
  } finally {
    write.mock.restore();
    process.exitCode = exitCode;
  }
}

/** The same against an agent. @param pages its answers, by path */
export async function askAgent(command: Command, words: readonly string[], pages: Readonly<Record<string, unknown>>) {
  const agent = createServer(({ url = '' }, response) => {
    response.writeHead(pages[url] === undefined ? 404 : 200).end(JSON.stringify(pages[url]));
  });
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(agent.address() as AddressInfo).port}`;
  try {
    return await runCommand(command, [...words, '--agent', url]);
  } finally {
    agent.close();
  }
}
