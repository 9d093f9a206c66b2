import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { placeSocket } from '../../../node-agent/files/own-socket.ts';
import { replaceFile, tempDirectories } from '../support.ts';

describe('a socket of the agent', () => {
  const temp = tempDirectories();
  let path: string;
  const servers: Server[] = [];
  beforeEach(() => {
    path = join(temp(), 'agent.sock');
  });
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });
  const place = () =>
    placeSocket(path, async (temporary) => {
      assert.equal(dirname(temporary), dirname(path), 'a rename needs the same file system');
      assert.ok(temporary.length <= path.length, 'a path that is not too long for a socket');
      const server = createServer();
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(temporary, resolve));
    });

  it('replaces what is at its path, and is removed', async () => {
    writeFileSync(path, 'of a previous agent');
    const socket = await place();
    assert.deepEqual([socket.isInPlace(), readdirSync(dirname(path))], [true, ['agent.sock']]);
    socket.remove();
    assert.deepEqual([socket.isInPlace(), existsSync(path)], [false, false]);
  });

  it('is not removed if another process has put its own in its place', async () => {
    const socket = await place();
    replaceFile(path, 'of another process');
    assert.equal(socket.isInPlace(), false);
    socket.remove();
    assert.equal(existsSync(path), true);
  });

  it('leaves nothing behind if it cannot be put in place', async () => {
    mkdirSync(path);
    await assert.rejects(place(), { code: 'EISDIR' });
    assert.deepEqual(readdirSync(dirname(path)), ['agent.sock']);
  });
});
