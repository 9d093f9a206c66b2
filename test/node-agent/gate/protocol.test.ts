import assert from 'node:assert/strict';
import { createQuestionReader, denial, ProtocolError } from '../../../node-agent/gate/protocol.ts';

const read = (text: string) => createQuestionReader().read(Buffer.from(text));
const ENVIRONMENT = 'CNI_ARGS=a=b;c=d\0CNI_IFNAME=eth0\0nonsense\0EMPTY=\0';

describe('the gate’s protocol: requests', () => {
  it('are read: verb, variables, configuration', () => {
    const question = read(`plumbline-gate/1 ADD ${ENVIRONMENT.length} 2\n${ENVIRONMENT}{}`);
    assert.deepEqual(question, {
      verb: 'ADD',
      environment: new Map([
        ['CNI_ARGS', 'a=b;c=d'],
        ['CNI_IFNAME', 'eth0'],
        ['EMPTY', ''],
      ]),
      conf: '{}',
    });
  });

  it('allow each verb of CNI', () => {
    for (const verb of ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION']) {
      const question = read(`plumbline-gate/1 ${verb} 0 0\n`);
      assert.deepEqual([question?.verb, question?.conf, question?.environment.size], [verb, '', 0]);
    }
  });

  const refused: [string, string, RegExp][] = [
    ['another version', 'plumbline-gate/2 ADD 0 0\n', /not a request in version 1: "plumbline-gate\/2/],
    ['another verb', 'plumbline-gate/1 MUL 0 0\n', /not a request in version 1/],
    ['no lengths', 'plumbline-gate/1 ADD\n', /not a request in version 1/],
    ['more variables than 64 KiB', 'plumbline-gate/1 ADD 65537 0\n', /too long/],
    ['more configuration than a MiB', 'plumbline-gate/1 ADD 0 1048577\n', /too long/],
    ['a first line that ends after 128 bytes', `${'x'.repeat(128)}\n`, /the first line is too long/],
  ];
  for (const [name, text, message] of refused) {
    it(`refuses ${name}`, () =>
      assert.throws(
        () => read(text),
        (error) => error instanceof ProtocolError && message.test(error.message),
      ));
  }
});

describe('the gate’s protocol: refusals', () => {
  const parse = (frame: Buffer) => {
    const newline = frame.indexOf(10);
    const [, code, length] = /^deny (\d+) (\d+)$/.exec(frame.toString('latin1', 0, newline)) ?? [];
    const text = frame.subarray(newline + 1);
    assert.equal(text.length, Number(length));
    return { code: Number(code), text: text.toString('utf8') };
  };

  it('have the code and the message with its length in bytes', () => {
    assert.equal(denial({ code: 11, message: 'dé' }).toString(), 'deny 11 3\ndé');
    assert.deepEqual(parse(denial({ code: 50, message: '' })), { code: 50, text: '' });
  });

  it('cut a message of more than 1500 bytes at a whole character', () => {
    assert.equal(parse(denial({ code: 11, message: 'x'.repeat(1500) })).text.length, 1500);
    assert.equal(parse(denial({ code: 11, message: 'x'.repeat(1501) })).text, 'x'.repeat(1500));
    assert.equal(parse(denial({ code: 11, message: `xx${'€'.repeat(1000)}` })).text, `xx${'€'.repeat(499)}`);
  });
});
