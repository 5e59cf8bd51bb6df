/**
 * The model of the environment variables. Their values may be secrets: they are in this form, in
 * the request, and nowhere else. Only the names are remembered.
 */

/** A variable as the form shows it. */
export type Variable = {
  /** Distinguishes the rows. */
  readonly id: number;
  name: string;
  value: string;
  /** Whether the value was typed. A remembered name has none, and is not sent. */
  isGiven: boolean;
};

/** What is wrong with a variable's name. */
export type NameFault = 'missing' | 'twice';

export class EnvironmentForm {
  /**
   * @param values the variables to begin with
   * @param names names of others, whose values are not known
   */
  constructor(values: Record<string, string> = {}, names: string[] = []) {
    const others = names.filter(name => !(name in values));
    others.forEach(name => this._add(name, '', false));
    Object.entries(values).forEach(([name, value]) =>
      this._add(name, value, true)
    );
  }

  /** The variables, in the order in which they were added. */
  get variables(): readonly Readonly<Variable>[] {
    return this._variables;
  }

  /** The variables to send. */
  get values(): Record<string, string> {
    const given = this._variables.filter(({ isGiven }) => isGiven);
    return Object.fromEntries(
      given.map(({ name, value }) => [name.trim(), value])
    );
  }

  /** The names of all variables. */
  get names(): string[] {
    const names = this._variables.map(({ name }) => name.trim());
    return [...new Set(names)].filter(Boolean);
  }

  /** The names of the variables without a value. */
  get unsetNames(): string[] {
    const { values } = this;
    return this.names.filter(name => !(name in values));
  }

  /** What is wrong with a variable's name; null if nothing is. */
  faultOf({ id, name, isGiven }: Variable): NameFault | null {
    if (name.trim() === '') {
      return isGiven ? 'missing' : null;
    }
    const isTwice = this._variables.some(
      other => other.id !== id && other.name.trim() === name.trim()
    );
    return isTwice ? 'twice' : null;
  }

  get hasErrors(): boolean {
    return this._variables.some(each => this.faultOf(each) !== null);
  }

  /** Add an empty row. */
  add(): void {
    this._add('', '', false);
  }

  /** Set a name. `NAME=value` sets both, as it is copied from a shell. */
  setName(id: number, text: string): void {
    const variable = this._get(id);
    const [, name, value] = /^(?:export )?([^=]*)=(.*)$/.exec(text) ?? [];
    variable.name = name ?? text;
    if (value !== undefined && value !== '') {
      this.setValue(id, value);
    }
  }

  setValue(id: number, value: string): void {
    Object.assign(this._get(id), { value, isGiven: true });
  }

  remove(id: number): void {
    this._variables = this._variables.filter(each => each.id !== id);
  }

  private _get(id: number): Variable {
    return this._variables.find(each => each.id === id)!;
  }

  private _add(name: string, value: string, isGiven: boolean): void {
    this._variables.push({ id: this._nextId++, name, value, isGiven });
  }

  private _variables: Variable[] = [];
  private _nextId = 0;
}
