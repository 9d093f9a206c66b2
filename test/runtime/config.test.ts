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

  const wrong: { name: string; argv: string[]; message: RegExp }[] = [
    { name: 'a port out of range', argv: ['--port', '70000'], message: /--port 70000: / },
    { name: 'a port that is not a number', argv: ['--port', 'http'], message: /--port http: / },
    {
      name: 'an unknown flag',
      argv: ['--prot', '1'],
      message: /unknown option '--prot'.*see plumbline-webhook --help/s,
    },
    { name: 'a flag without its value', argv: ['--port'], message: /argument missing/ },
    { name: 'an extra argument', argv: ['serve'], message: /too many arguments/ },
    { name: 'an invalid boolean', argv: ['--full-pcpus-only', 'maybe'], message: /expected true or false/ },
    { name: 'an unknown log level', argv: ['--log-level', 'loud'], message: /--log-level loud: / },
  ];
  for (const { name, argv, message } of wrong) {
    it(`refuse ${name} with one line that names it`, () => {
      assert.throws(
        () => parseWebhookConfig(argv),
        (error: unknown) =>
          error instanceof ConfigError && message.test(error.message) && !error.message.includes('\n'),
      );
    });
  }
});
