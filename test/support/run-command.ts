import { mock } from 'node:test';
import type { Command } from 'commander';
import { serveJson } from './json-server.ts';

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
  const agent = await serveJson(({ url = '' }) => (pages[url] === undefined ? { status: 404 } : { body: pages[url] }));
  try {
    return await runCommand(command, [...words, '--agent', `http://127.0.0.1:${agent.port}`]);
  } finally {
    await agent.stop();
  }
}
