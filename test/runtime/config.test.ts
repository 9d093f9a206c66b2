import assert from 'node:assert/strict';
import { ConfigError } from '../../runtime/config.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';

describe('settings of the daemons', () => {
  it('come from flags, with defaults, into a frozen object', () => {
    const config = parseWebhookConfig(['--port', '9443', '--full-pcpus-only', 'false']);
    assert.equal(config.port, 9443);
    assert.equal(config.fullPcpusOnly, false);
    assert.equal(config.probePort, 8081);
    assert.ok(Object.isFrozen(config));
  });

  it('come from the environment if the flag is absent', () => {
    process.env['PLUMBLINE_PORT'] = '1234';
    try {
      assert.equal(parseWebhookConfig([]).port, 1234);
      assert.equal(parseWebhookConfig(['--port', '99']).port, 99);
    } finally {
      delete process.env['PLUMBLINE_PORT'];
    }
  });

  const wrong: [name: string, argv: string[], message: RegExp][] = [
    ['a port out of range', ['--port', '70000'], /--port 70000: /],
    ['a port that is not a number', ['--port', 'http'], /--port http: /],
    ['an unknown flag', ['--prot', '1'], /unknown option '--prot'.*see plumbline-webhook --help/s],
    ['a flag without its value', ['--port'], /argument missing/],
    ['an extra argument', ['serve'], /too many arguments/],
    ['an invalid boolean', ['--full-pcpus-only', 'maybe'], /expected true or false/],
    ['an unknown log level', ['--log-level', 'loud'], /--log-level loud: /],
  ];
  for (const [name, argv, message] of wrong) {
    it(`refuse ${name} with one line that names it`, () => {
      const isOneLine = (error: unknown) => error instanceof ConfigError && !error.message.includes('\n');
      assert.throws(() => parseWebhookConfig(argv), isOneLine);
      assert.throws(() => parseWebhookConfig(argv), message);
    });
  }
});
