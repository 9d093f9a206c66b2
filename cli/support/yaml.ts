// A file of its own, so that it is loaded only for -o yaml; import('yaml') itself has no named exports once it is bundled.
import { stringify } from 'yaml';
import { printableJson } from '../../runtime/printable.ts';

/** Data as YAML. Unprintable characters can only be escaped in double quotes. */
export function yamlText(data: unknown): string {
  const json = JSON.stringify(data);
  const isPrintable = printableJson(json) === json;
  const text = stringify(JSON.parse(json), {
    lineWidth: 0,
    aliasDuplicateObjects: false,
    defaultStringType: isPrintable ? 'PLAIN' : 'QUOTE_DOUBLE',
  });
  return isPrintable ? text : printableJson(text);
}
