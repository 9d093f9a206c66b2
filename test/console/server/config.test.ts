import assert from 'node:assert/strict';
import { parseConsoleConfig } from '../../../console/server/config.ts';
import { isListenerHost, isLoopback, parseListenAddress } from '../../../runtime/http-server.ts';

describe('the console’s address', () => {
  const addresses: [string, ReturnType<typeof parseListenAddress>][] = [
    ['127.0.0.1:8083', { host: '127.0.0.1', port: 8083 }],
    ['[::1]:8083', { host: '::1', port: 8083 }],
    ['127.0.0.1', undefined],
    ['::1:8083', undefined],
    ['127.0.0.1:65536', undefined],
    ['127.0.0.1:port', undefined],
  ];
  for (const [text, expected] of addresses) {
    it(`reads ${text}`, () => assert.deepEqual(parseListenAddress(text), expected));
  }

  it('must be a loopback address, because the page has no login; another one is refused with its flag', () => {
    assert.deepEqual(parseConsoleConfig([]).address, { host: '127.0.0.1', port: 8083 });
    for (const address of ['8083', '0.0.0.0:8083', '[::]:8083']) {
      assert.throws(
        () => parseConsoleConfig(['--address', address]),
        ({ message }: Error) => message === `--address ${address}: expected a loopback address, <host>:<port>`,
      );
    }
  });

  it('is recognised if no other machine can reach it', () => {
    assert.deepEqual(['127.1.2.3', 'localhost', '::1'].map(isLoopback), [true, true, true]);
    assert.deepEqual(['0.0.0.0', '10.0.0.1', '::', 'localhost.evil.example'].some(isLoopback), false);
  });

  const hosts: [string | undefined, boolean][] = [
    ['localhost', true],
    ['LOCALHOST:8083', true],
    ['[::1]:8083', true],
    ['10.1.2.3:8083', true],
    ['10.1.2.4:8083', false],
    ['localhost.evil.example:8083', false],
    ['127.0.0.1.evil.example', false],
    ['evil.example:8083@localhost', false],
    ['localhost:8083:8083', false],
    [undefined, false],
  ];
  for (const [header, expected] of hosts) {
    it(`on 10.1.2.3, Host ${header ?? 'absent'} is ${expected ? 'its own' : 'foreign'}`, () =>
      assert.equal(isListenerHost(header, '10.1.2.3'), expected));
  }
});
