import assert from 'node:assert/strict';
import { isLoopback, isOwnHost, parseConsoleAddress } from '../../scheduler-plugin/web-console/address.ts';
import { parseSchedulerPluginConfig } from '../../scheduler-plugin/wiring/config.ts';

describe('the console’s address', () => {
  const addresses: [string, ReturnType<typeof parseConsoleAddress>][] = [
    ['127.0.0.1:8083', { host: '127.0.0.1', port: 8083 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:8083', { host: '::1', port: 8083 }],
    ['127.0.0.1', undefined],
    [':8083', undefined],
    ['::1:8083', undefined],
    ['127.0.0.1:65536', undefined],
    ['127.0.0.1:port', undefined],
    ['', undefined],
  ];
  for (const [text, expected] of addresses) {
    it(`reads ${text || 'nothing'}`, () => assert.deepEqual(parseConsoleAddress(text), expected));
  }

  it('is on this host by default, may be off, and a wrong one is told with its flag', () => {
    assert.equal(parseSchedulerPluginConfig([]).consoleAddress, '127.0.0.1:8083');
    assert.equal(parseSchedulerPluginConfig(['--console-address', 'off']).consoleAddress, 'off');
    assert.throws(
      () => parseSchedulerPluginConfig(['--console-address', '8083']),
      /--console-address 8083: expected <host>:<port>, or off/,
    );
  });

  it('knows which addresses nobody reaches from elsewhere', () => {
    assert.deepEqual(
      ['127.0.0.1', '127.1.2.3', 'localhost', '::1', '0.0.0.0', '10.0.0.1', '::', 'localhost.evil.example'].map(
        isLoopback,
      ),
      [true, true, true, true, false, false, false, false],
    );
  });

  const hosts: [string | undefined, boolean][] = [
    ['localhost', true],
    ['localhost:12345', true],
    ['LOCALHOST:8083', true],
    ['127.0.0.1:8083', true],
    ['[::1]:8083', true],
    ['10.1.2.3:8083', true],
    ['10.1.2.4:8083', false],
    ['evil.example', false],
    ['localhost.evil.example:8083', false],
    ['127.0.0.1.evil.example', false],
    ['evil.example:8083@localhost', false],
    ['localhost:8083:8083', false],
    ['', false],
    [undefined, false],
  ];
  for (const [header, expected] of hosts) {
    it(`on 10.1.2.3, Host ${header ?? 'absent'} is ${expected ? 'its own' : 'somebody else’s'}`, () =>
      assert.equal(isOwnHost(header, '10.1.2.3'), expected));
  }
});
