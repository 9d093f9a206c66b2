import type { Json } from './tree.ts';

/** Values that the templates pass on unchanged, so the schema accepts any object. */
const HANDED_ON = ['resources', 'nodeSelector', 'affinity', 'updateStrategy'];
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  'scheduler.mode': ['sidecar', 'loopback'],
  'nodeAgent.distribution': ['', 'k3s', 'rke2', 'k0s', 'microk8s'],
  'dpu.lease': ['none', 'own', 'observe'],
  'webhook.alignment': ['annotated', 'always', 'auto'],
  'images.pullPolicy': ['', 'Always', 'IfNotPresent', 'Never'],
};

/** A JSON schema of the values: their types, and no other keys, so that a mistyped key is an error. */
export function valuesSchema(values: Json): object {
  return { $schema: 'https://json-schema.org/draft-07/schema#', ...schemaOf(values, '') };
}

function schemaOf(value: Json, path: string): object {
  const key = path.split('.').at(-1) ?? '';
  if (HANDED_ON.includes(key)) return { type: 'object' };
  if (key === 'flags') {
    return {
      type: 'object',
      propertyNames: { pattern: '^[a-z][a-z0-9-]*$' },
      additionalProperties: { type: ['string', 'number', 'boolean'] },
    };
  }
  if (Array.isArray(value)) return { type: 'array' };
  if (typeof value !== 'object' || value === null) {
    const choices = CHOICES[path];
    return { type: typeof value === 'number' ? 'integer' : typeof value, ...(choices && { enum: choices }) };
  }
  const properties = Object.entries(value).map(([name, one]) => [
    name,
    schemaOf(one, path === '' ? name : `${path}.${name}`),
  ]);
  // Helm itself adds this key.
  const shared = path === '' ? { global: { type: 'object' } } : {};
  return { type: 'object', additionalProperties: false, properties: { ...Object.fromEntries(properties), ...shared } };
}
