/*
 * The machine "tigon2": a Tigon II card, whose host is on a vfio-user socket
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/boards.h"
#include "hw/qdev-properties.h"
#include "qapi/visitor.h"
#include "card.h"

#define TYPE_TIGON2_MACHINE MACHINE_TYPE_NAME("tigon2")
OBJECT_DECLARE_SIMPLE_TYPE(Tigon2Machine, TIGON2_MACHINE)

/* The machine's options, which are properties of the card. */
static const struct {
    const char *name;
    const char *description;
} options[] = {
    { "model", "Library with the hardware model" },
    { "socket", "Socket at which the card serves vfio-user" },
    { "board", "Board file; the model has a default" },
    { "eeprom", "Image of the serial EEPROM" },
};

/*
 * Firmware is small: the buffer for translated code, which is thrown away only
 * when it is full, need not be QEMU's usual gigabyte.  -accel tcg,tb-size=N
 * says otherwise, in MB.
 */
static GlobalProperty defaults[] = {
    { "tcg-accel", "tb-size", "32" },
};

struct Tigon2Machine {
    MachineState parent_obj;

    char *option[ARRAY_SIZE(options)];
};

static void machine_init(MachineState *ms)
{
    Tigon2Machine *machine = TIGON2_MACHINE(ms);
    DeviceState *card = qdev_new(TYPE_TIGON2_CARD);

    /* Found in the monitor as /machine/card. */
    object_property_add_child(OBJECT(ms), "card", OBJECT(card));
    for (int i = 0; i < ARRAY_SIZE(options); i++) {
        if (machine->option[i]) {
            qdev_prop_set_string(card, options[i].name, machine->option[i]);
        }
    }
    qemu_configure_nic_device(card, true, NULL);
    sysbus_realize_and_unref(SYS_BUS_DEVICE(card), &error_fatal);
}

static void get_option(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    char **option = &TIGON2_MACHINE(obj)->option[(uintptr_t)opaque];
    char *value = *option ?: (char *)"";

    visit_type_str(v, name, &value, errp);
}

static void set_option(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    char **option = &TIGON2_MACHINE(obj)->option[(uintptr_t)opaque];
    char *value;

    if (visit_type_str(v, name, &value, errp)) {
        g_free(*option);
        *option = value;
    }
}

static void machine_finalize(Object *obj)
{
    for (int i = 0; i < ARRAY_SIZE(options); i++) {
        g_free(TIGON2_MACHINE(obj)->option[i]);
    }
}

static void machine_class_init(ObjectClass *oc, void *data)
{
    MachineClass *mc = MACHINE_CLASS(oc);

    mc->desc = "Alteon Tigon II gigabit Ethernet card";
    mc->init = machine_init;
    mc->min_cpus = TIGON2_CPUS;
    mc->max_cpus = TIGON2_CPUS;
    mc->default_cpus = TIGON2_CPUS;
    mc->default_cpu_type = TYPE_TIGON2_CPU;
    mc->default_nic = TYPE_TIGON2_CARD;
    mc->no_cdrom = true;
    mc->no_floppy = true;
    mc->no_parallel = true;
    mc->no_serial = true;
    compat_props_add(mc->compat_props, defaults, G_N_ELEMENTS(defaults));
    for (uintptr_t i = 0; i < ARRAY_SIZE(options); i++) {
        object_class_property_add(oc, options[i].name, "str", get_option,
                                  set_option, NULL, (void *)i);
        object_class_property_set_description(oc, options[i].name,
                                              options[i].description);
    }
}

static const TypeInfo machine_types[] = {
    {
        .name = TYPE_TIGON2_MACHINE,
        .parent = TYPE_MACHINE,
        .instance_size = sizeof(Tigon2Machine),
        .instance_finalize = machine_finalize,
        .class_init = machine_class_init,
    },
};

DEFINE_TYPES(machine_types)
